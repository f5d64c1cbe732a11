// A button that opens a list of actions (ARIA authoring practices, menu button).
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon";

export interface MenuItem {
  label: string;
  /** A function to call, an address to go to, or the items of a submenu that replaces this list. */
  does: (() => void) | string | readonly MenuItem[];
  icon?: IconName;
}

interface Props {
  label: string;
  items: readonly MenuItem[];
  tight?: boolean;
  /** Shown before the label. */
  icon?: IconName;
  /** Shown on the button instead of the label, which then is the button's name for screen readers. */
  opener?: ComponentChildren;
}

const MARGIN_PX = 8;

export function Menu({ label, items, tight = false, icon, opener: buttonContent }: Props) {
  const [openItems, setOpenItems] = useState<readonly MenuItem[] | null>(null);
  const isOpen = openItems !== null;
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const entries = () => [...(box.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
  const close = (backTo: HTMLElement | null = opener.current) => {
    setOpenItems(null);
    backTo?.focus();
  };
  useEffect(() => {
    if (!isOpen) {
      return undefined;
    }
    const closeOnOutsidePress = (event: Event) => box.current?.contains(event.target as Node) || close(null);
    document.addEventListener("pointerdown", closeOnOutsidePress);
    return () => document.removeEventListener("pointerdown", closeOnOutsidePress);
  }, [isOpen]);
  useLayoutEffect(() => {
    if (list.current) {
      // The list starts below its button, and moves left if it would leave the window.
      list.current.style.translate = "";
      const overflowPx = list.current.getBoundingClientRect().right + MARGIN_PX - document.documentElement.clientWidth;
      list.current.style.translate = overflowPx > 0 ? `${-overflowPx}px` : "";
    }
    entries()[0]?.focus();
  }, [openItems]);
  const handleKey = (event: KeyboardEvent) => {
    const allEntries = entries();
    const focusedIndex = allEntries.indexOf(document.activeElement as HTMLElement);
    const nextIndex = { ArrowDown: focusedIndex + 1, ArrowUp: focusedIndex - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Escape") {
      close();
    } else if (event.key === "Tab") {
      setOpenItems(null);
    } else if (event.key === "ArrowLeft") {
      setOpenItems(items);
    } else if (event.key === "ArrowRight") {
      const action = openItems?.[focusedIndex]?.does;
      setOpenItems(Array.isArray(action) ? action : openItems);
    } else if (nextIndex !== undefined) {
      event.preventDefault();
      allEntries.at(nextIndex >= allEntries.length ? 0 : nextIndex)?.focus();
    }
  };
  // Close the menu when the focus has left it. The timeout skips the moment in which items are replaced by a submenu.
  const closeUnlessFocused = () => setTimeout(() => box.current?.contains(document.activeElement) || setOpenItems(null));
  return (
    <div class="menu" ref={box} onFocusOut={closeUnlessFocused}>
      <button
        type="button"
        class={buttonContent ? "button plain square" : tight ? "button tight" : "button"}
        aria-label={buttonContent ? label : undefined}
        ref={opener}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpenItems(isOpen ? null : items)}
      >
        {buttonContent ?? (
          <>
            {icon && <Icon name={icon} size="s" />}
            {label} <Icon name="chevron-down" size="s" />
          </>
        )}
      </button>
      {openItems && (
        <div class="menu-list" role="menu" aria-label={label} ref={list} onKeyDown={handleKey}>
          {openItems.map(({ label: itemLabel, does, icon }) =>
            typeof does === "string" ? (
              <a key={itemLabel} href={does} role="menuitem" tabIndex={-1} onClick={() => setOpenItems(null)}>
                {icon && <Icon name={icon} />}
                {itemLabel}
              </a>
            ) : typeof does === "function" ? (
              <button key={itemLabel} type="button" role="menuitem" tabIndex={-1} onClick={() => (close(), does())}>
                {icon && <Icon name={icon} />}
                {itemLabel}
              </button>
            ) : (
              <button key={itemLabel} type="button" role="menuitem" aria-haspopup="menu" tabIndex={-1} onClick={() => setOpenItems(does)}>
                {icon && <Icon name={icon} />}
                {itemLabel} <Icon name="chevron-right" size="s" />
              </button>
            ),
          )}
        </div>
      )}
    </div>
  );
}
