// A button that opens a list of actions (ARIA authoring practices, menu button).
import { useEffect, useRef, useState } from "preact/hooks";

export interface Item {
  label: string;
  /** What happens, or where it leads. */
  does: (() => void) | string;
}

export function Menu({ label, items }: { label: string; items: readonly Item[] }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const entries = () => [...(box.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
  const close = (backTo: HTMLElement | null = opener.current) => {
    setOpen(false);
    backTo?.focus();
  };
  useEffect(() => {
    if (!isOpen) {
      return undefined;
    }
    entries()[0]?.focus();
    const away = (event: Event) => box.current?.contains(event.target as Node) || close(null);
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [isOpen]);
  const keyed = (event: KeyboardEvent) => {
    const all = entries();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Escape") {
      close();
    } else if (event.key === "Tab") {
      setOpen(false);
    } else if (to !== undefined) {
      event.preventDefault();
      all.at(to >= all.length ? 0 : to)?.focus();
    }
  };
  return (
    <div class="menu" ref={box}>
      <button
        type="button"
        class="button"
        ref={opener}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {label} <span aria-hidden="true">▾</span>
      </button>
      {isOpen && (
        <div class="menu-list" role="menu" aria-label={label} onKeyDown={keyed}>
          {items.map(({ label: words, does }) =>
            typeof does === "string" ? (
              <a key={words} href={does} role="menuitem" tabIndex={-1} onClick={() => setOpen(false)}>
                {words}
              </a>
            ) : (
              <button key={words} type="button" role="menuitem" tabIndex={-1} onClick={() => (close(), does())}>
                {words}
              </button>
            ),
          )}
        </div>
      )}
    </div>
  );
}
