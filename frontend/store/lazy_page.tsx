// A page whose code is loaded when it is opened. The first page of the store does not load it.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Heading } from "../shared/components/heading";
import { Failed, Loading } from "../shared/components/states";
import { Problem } from "../shared/problem";
import { translator } from "../shared/i18n";

const t = translator("common");

interface Props<Given> {
  load: () => Promise<ComponentType<Given>>;
  props: Given;
  /** Whether it is a part of a page that has its own heading. */
  isPart?: boolean;
}

export function LazyPage<Given extends object>({ load, props, isPart = false }: Props<Given>) {
  const [found, setFound] = useState<{ Page: ComponentType<Given> } | Problem | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    load().then(
      (Page) => setFound({ Page }),
      () => setFound(Problem.offline()),
    );
  }, [round]);
  if (found === null) {
    return <Loading />;
  }
  if (found instanceof Problem) {
    return (
      <>
        {!isPart && <Heading title={t("failed")} />}
        <Failed problem={found} onRetry={() => (setFound(null), setRound(round + 1))} />
      </>
    );
  }
  return <found.Page {...props} />;
}
