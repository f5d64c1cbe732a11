// A button of the filter bar that opens a box below it. Escape or a press outside closes it.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import "./popover.css";

interface Props {
  isOpen: boolean;
  onClose: () => void;
  /** The content of the button. */
  opener: ComponentChildren;
  label: string;
  children: ComponentChildren;
}

const MARGIN_PX = 8;

export function Popover({ isOpen, onClose, opener, label, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) {
      return undefined;
    }
    const away = (event: Event) => box.current?.contains(event.target as Node) || onClose();
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [isOpen]);
  useLayoutEffect(() => {
    if (panel.current) {
      const { left, right } = panel.current.getBoundingClientRect();
      const beyond = right + MARGIN_PX - document.documentElement.clientWidth;
      panel.current.style.translate = beyond > 0 ? `${-Math.min(beyond, left - MARGIN_PX)}px` : "";
    }
  }, [isOpen]);
  const handleKey = (event: KeyboardEvent) => {
    if (event.key === "Escape" && isOpen && !event.defaultPrevented) {
      event.preventDefault();
      event.stopPropagation();
      onClose();
      box.current?.querySelector<HTMLElement>("[aria-expanded]")?.focus();
    }
  };
  return (
    <div class="popover" ref={box} onKeyDown={handleKey}>
      {opener}
      {isOpen && (
        <div class="popover-panel" role="group" aria-label={label} ref={panel}>
          {children}
        </div>
      )}
    </div>
  );
}
