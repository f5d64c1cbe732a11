// A question that has to be answered before anything else; the browser's own dialog keeps the focus inside.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./button";
import { translator } from "../i18n";

const t = translator("common");

interface Props {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  /** What can be done, beside closing it. */
  actions?: ComponentChildren;
  /** An action has the name that leaving the dialog has otherwise, or one that means the same. */
  isCancelling?: boolean;
  look?: "wide" | "sheet";
  /** It is read before anything is answered: the keyboard begins at its top, not at its first control. */
  isRead?: boolean;
  /** What its action does cannot be undone: the keyboard begins on leaving it. */
  isCautious?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, isOpen, onClose, actions, isCancelling = false, look, isRead = false, isCautious = false, children }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const before = useRef<Element | null>(null);
  useEffect(() => {
    if (isOpen && !box.current?.open) {
      before.current = document.activeElement;
      box.current?.showModal();
      // What has the keyboard is seen, also where the window is smaller than the question.
      document.activeElement?.scrollIntoView({ block: "nearest" });
    } else if (!isOpen) {
      box.current?.close();
    }
  }, [isOpen]);
  useEffect(
    () => () => {
      // Taken away while it is open, it gives the keyboard back itself, once the page is no longer behind it.
      const last = before.current;
      setTimeout(() => last instanceof HTMLElement && last.isConnected && document.activeElement === document.body && last.focus(), 0);
    },
    [],
  );
  return (
    <dialog class={look ? `dialog ${look}` : "dialog"} ref={box} onClose={onClose} aria-label={title}>
      {isOpen && (
        <>
          <div class="stack">
            <h2 {...(isRead ? { autofocus: true, tabIndex: -1 } : {})}>{title}</h2>
            {children}
          </div>
          <div class="row">
            {actions}
            <Button {...(isCautious ? { autofocus: true } : {})} onClick={onClose}>{actions ? t(isCancelling ? "back" : "cancel") : t("close")}</Button>
          </div>
        </>
      )}
    </dialog>
  );
}
