// Short news that need no answer; they go by themselves. Told from anywhere, shown by components/toast.tsx.
import { signal } from "@preact/signals";

interface News {
  words: string;
  undo?: { label: string; run: () => void };
}

const SHOWN_MS = 6000;
export const news = signal<readonly News[]>([]);

/** Tell something that needs no answer. With an undo it stays until it is pressed or followed by other news. */
export function tell(words: string, undo?: { label: string; run: () => void }): void {
  const told: News = undo ? { words, undo } : { words };
  news.value = [...news.peek().filter((each) => !each.undo), told];
  if (!undo) {
    setTimeout(() => drop(told), SHOWN_MS);
  }
}

/** No longer tell it. */
export function drop(told: News): void {
  news.value = news.peek().filter((each) => each !== told);
}
