// The message that components/toast.tsx shows for some seconds. Any module can set it.
import { signal } from "@preact/signals";

interface Toast {
  /** Distinguishes it from the message before, which may have the same words. */
  id: number;
  words: string;
  undo?: { label: string; run: () => void };
}

const SHOWN_MS = 6000;
export const currentToast = signal<Toast | null>(null);

/** Show a message that needs no answer, in place of the one before. With an undo it stays until the undo is pressed. */
export function showToast(words: string, undo?: { label: string; run: () => void }): void {
  const message: Toast = { id: (currentToast.peek()?.id ?? 0) + 1, words, ...(undo ? { undo } : {}) };
  currentToast.value = message;
  if (!undo) {
    setTimeout(() => dismissToast(message), SHOWN_MS);
  }
}

/** Remove the message, if it is still the one shown. */
export function dismissToast(message: Toast): void {
  if (currentToast.peek() === message) {
    currentToast.value = null;
  }
}
