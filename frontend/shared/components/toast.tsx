// Short news at the edge of the page, read aloud, which goes by itself; with a way back where there is one.
import { signal } from "@preact/signals";
import { Button } from "./button";

interface News {
  words: string;
  undo?: { label: string; run: () => void };
}

const SHOWN_MS = 6000;
const news = signal<readonly News[]>([]);

/** Tell something that needs no answer. With an undo it stays until it is pressed or followed by other news. */
export function tell(words: string, undo?: { label: string; run: () => void }): void {
  const told: News = undo ? { words, undo } : { words };
  news.value = [...news.peek().filter((each) => !each.undo), told];
  if (!undo) {
    setTimeout(() => drop(told), SHOWN_MS);
  }
}

function drop(told: News): void {
  news.value = news.peek().filter((each) => each !== told);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {news.value.map((each) => (
        <div class="toast" key={each.words}>
          {each.words}
          {each.undo && (
            <Button tight onClick={() => (drop(each), each.undo?.run())}>
              {each.undo.label}
            </Button>
          )}
        </div>
      ))}
    </div>
  );
}
