// A modal dialog. The browser's <dialog> keeps the focus inside.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./button";
import { translator } from "../i18n";

const t = translator("common");

interface Props {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  /** The buttons, besides the button that closes the dialog. */
  actions?: ComponentChildren;
  /** Whether an action of the dialog is named "Cancel". The closing button is then named "Back". */
  isCancelling?: boolean;
  variant?: "wide" | "sheet";
  /** Whether the person must read the dialog first: the focus starts at its top, not at its first control. */
  isRead?: boolean;
  /** Whether the action cannot be undone: the focus starts on the button that closes the dialog. */
  isCautious?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, isOpen, onClose, actions, isCancelling = false, variant, isRead = false, isCautious = false, children }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const focusedBefore = useRef<Element | null>(null);
  useEffect(() => {
    if (isOpen && !box.current?.open) {
      focusedBefore.current = document.activeElement;
      box.current?.showModal();
      // Scroll to the focused element if the window is smaller than the dialog.
      document.activeElement?.scrollIntoView({ block: "nearest" });
    } else if (!isOpen) {
      box.current?.close();
    }
  }, [isOpen]);
  useEffect(
    () => () => {
      // If the dialog is removed while it is open, return the focus after the page can be focused again.
      const previousFocus = focusedBefore.current;
      setTimeout(() => previousFocus instanceof HTMLElement && previousFocus.isConnected && document.activeElement === document.body && previousFocus.focus(), 0);
    },
    [],
  );
  return (
    <dialog class={variant ? `dialog ${variant}` : "dialog"} ref={box} onClose={onClose} aria-label={title}>
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
