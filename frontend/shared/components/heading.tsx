// The heading of a page. It sets the title of the window, and gets the focus after a change of page.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { focusHeading } from "../router";
import { number } from "../i18n";

export const siteState = {
  title: "Countersign",
  /** The number of approvals that wait for this person. It precedes the title of every page. */
  waiting: signal(0),
};

/** The heading with `children` beside it. Every page has exactly one from the start. */
export function Heading({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="page-head">
      <PageTitle title={title} />
      {children}
    </div>
  );
}

/** Only the heading, for pages that lay out its neighbours themselves. */
export function PageTitle({ title }: { title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const waitingCount = siteState.waiting.value;
  useEffect(() => {
    const fullTitle = title === siteState.title ? title : `${title} · ${siteState.title}`;
    document.title = waitingCount > 0 ? `(${number(waitingCount)}) ${fullTitle}` : fullTitle;
  }, [title, waitingCount]);
  useEffect(() => {
    if (heading.current) {
      focusHeading(heading.current);
    }
  }, [title]);
  return (
    <h1 tabIndex={-1} ref={heading}>
      {title}
    </h1>
  );
}
