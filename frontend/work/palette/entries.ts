// The entries that the current page adds to the command palette.
import { signal } from "@preact/signals";

export interface PaletteEntry {
  words: string;
  run: () => void;
}

export const pageEntries = signal<readonly PaletteEntry[]>([]);
export const isOpen = signal(false);

/** Offer these entries until the returned function is called; pages call this in an effect. */
export function setPageEntries(entries: readonly PaletteEntry[]): () => void {
  pageEntries.value = entries;
  return () => {
    pageEntries.value = [];
  };
}
