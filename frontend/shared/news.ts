// Short news that need no answer; they go by themselves. Told from anywhere, shown by components/toast.tsx.
import { signal } from "@preact/signals";

interface News {
  /** Tells it from the one before, which may have had the same words. */
  id: number;
  words: string;
  undo?: { label: string; run: () => void };
}

const SHOWN_MS = 6000;
export const news = signal<News | null>(null);

/** Show a message that needs no answer, in place of the one before. With an undo it stays until the undo is pressed. */
export function tell(words: string, undo?: { label: string; run: () => void }): void {
  const message: News = { id: (news.peek()?.id ?? 0) + 1, words, ...(undo ? { undo } : {}) };
  news.value = message;
  if (!undo) {
    setTimeout(() => drop(message), SHOWN_MS);
  }
}

/** No longer tell it. */
export function drop(message: News): void {
  if (news.peek() === message) {
    news.value = null;
  }
}
