// Components whose code is loaded when they are first shown, so that the first page loads fast.
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { FailureNotice, Loading } from "../shared/components/states";
import { Problem } from "../shared/problem";

const loadedComponents = new Map<unknown, unknown>();

/** A component whose code is loaded when it is first shown. */
export function lazyComponent<Props extends object>(load: () => Promise<ComponentType<Props>>): (props: Props) => JSX.Element {
  return function Later(props: Props) {
    const [isFailed, setFailed] = useState(false);
    const [, setRound] = useState(0);
    const Component = loadedComponents.get(load) as ComponentType<Props> | undefined;
    useEffect(() => {
      if (!loadedComponents.has(load)) {
        load().then(
          (component) => (loadedComponents.set(load, component), setRound((round) => round + 1)),
          () => setFailed(true),
        );
      }
    }, []);
    if (isFailed) {
      return <FailureNotice problem={Problem.offline()} onRetry={() => location.reload()} />;
    }
    return Component ? <Component {...props} /> : <Loading />;
  };
}
