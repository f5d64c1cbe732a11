// What the page in front offers to the palette, beside what is offered everywhere.
import { signal } from "@preact/signals";

export interface Offer {
  words: string;
  run: () => void;
}

export const offered = signal<readonly Offer[]>([]);
export const isOpen = signal(false);

/** Offer these until the answered function is called; pages do that in an effect. */
export function offer(added: readonly Offer[]): () => void {
  offered.value = added;
  return () => {
    offered.value = [];
  };
}
