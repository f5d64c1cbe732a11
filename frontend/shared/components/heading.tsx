// The heading of a page: it names the window, and the keyboard goes on from it after a change of page.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { focusHeading } from "../router";
import { number } from "../i18n";

export const siteState = {
  title: "Countersign",
  /** How many things wait for this person: it stands before the title of every page. */
  waiting: signal(0),
};

/** Every page has exactly one, from the moment it is shown. `children` stand beside it. */
export function Heading({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="page-head">
      <PageTitle title={title} />
      {children}
    </div>
  );
}

/** The heading by itself, where a page has it at another place. */
export function PageTitle({ title }: { title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const waiting = siteState.waiting.value;
  useEffect(() => {
    const named = title === siteState.title ? title : `${title} · ${siteState.title}`;
    document.title = waiting > 0 ? `(${number(waiting)}) ${named}` : named;
  }, [title, waiting]);
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
