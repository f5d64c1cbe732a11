// The heading of a page: it names the window, and the keyboard goes on from it after a change of page.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { arrived } from "../router";

export const site = { title: "Countersign" };

/** Every page has exactly one, from the moment it is shown. `children` stand beside it. */
export function Heading({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = title === site.title ? title : `${title} · ${site.title}`;
    if (heading.current) {
      arrived(heading.current);
    }
  }, [title]);
  return (
    <div class="page-head">
      <h1 tabIndex={-1} ref={heading}>
        {title}
      </h1>
      {children}
    </div>
  );
}
