// Components whose code is loaded when they are first shown, so that the first page loads fast.
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failed, Loading } from "../shared/components/states";
import { Problem } from "../shared/problem";

const loaded = new Map<unknown, unknown>();

/** A component whose code is loaded when it is first shown. */
export function lazyComponent<Props extends object>(load: () => Promise<ComponentType<Props>>): (props: Props) => JSX.Element {
  return function Later(props: Props) {
    const [isFailed, setFailed] = useState(false);
    const [, setRound] = useState(0);
    const Found = loaded.get(load) as ComponentType<Props> | undefined;
    useEffect(() => {
      if (!loaded.has(load)) {
        load().then(
          (found) => (loaded.set(load, found), setRound((last) => last + 1)),
          () => setFailed(true),
        );
      }
    }, []);
    if (isFailed) {
      return <Failed problem={Problem.offline()} onRetry={() => location.reload()} />;
    }
    return Found ? <Found {...props} /> : <Loading />;
  };
}
