// A page whose code is loaded when it is opened. The first page of the store does not load it.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Heading } from "../shared/components/heading";
import { FailureNotice, Loading } from "../shared/components/states";
import { Problem } from "../shared/problem";
import { translator } from "../shared/i18n";

const t = translator("common");

interface Props<Given> {
  load: () => Promise<ComponentType<Given>>;
  props: Given;
  /** Whether this is a part of a page that has its own heading. */
  isPart?: boolean;
}

export function LazyPage<Given extends object>({ load, props, isPart = false }: Props<Given>) {
  const [loadedPage, setLoadedPage] = useState<{ Page: ComponentType<Given> } | Problem | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    load().then(
      (Page) => setLoadedPage({ Page }),
      () => setLoadedPage(Problem.offline()),
    );
  }, [round]);
  if (loadedPage === null) {
    return <Loading />;
  }
  if (loadedPage instanceof Problem) {
    return (
      <>
        {!isPart && <Heading title={t("failed")} />}
        <FailureNotice problem={loadedPage} onRetry={() => (setLoadedPage(null), setRound(round + 1))} />
      </>
    );
  }
  return <loadedPage.Page {...props} />;
}
