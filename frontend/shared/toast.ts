// The messages that components/toast.tsx shows for some seconds. Any module can add a message.
import { signal } from "@preact/signals";

interface Toast {
  /** Distinguishes this message from other messages with the same words. */
  id: number;
  message: string;
  undo?: { label: string; run: () => void };
}

const SHOWN_MS = 5000;
const UNDO_MS = 8000;
const MAX_TOASTS = 3;
/** The newest last. */
export const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Show a message for some seconds, or longer if it has an undo button. The same words are not shown twice. */
export function showToast(messageText: string, undo?: { label: string; run: () => void }): void {
  const message: Toast = { id: (lastId += 1), message: messageText, ...(undo ? { undo } : {}) };
  toasts.value = [...toasts.peek().filter((toast) => toast.message !== messageText), message].slice(-MAX_TOASTS);
  dismissAfter(message, undo ? UNDO_MS : SHOWN_MS);
}

/** Dismiss the message after a time, but not while the pointer or the keyboard is on the messages. */
function dismissAfter(message: Toast, ms: number): void {
  setTimeout(() => (document.querySelector(".toasts:is(:hover, :focus-within)") ? dismissAfter(message, ms) : dismissToast(message)), ms);
}

export function dismissToast(message: Toast): void {
  toasts.value = toasts.peek().filter((toast) => toast !== message);
}
