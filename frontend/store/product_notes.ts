// Private notes about products, kept in the local storage of this browser for each person.
import { effect, signal } from "@preact/signals";
import { showToast } from "../shared/toast";
import { me } from "./me";
import { translator } from "../shared/i18n";

const tLibrary = translator("library");

export interface ProductNotes {
  isHidden?: boolean;
  note?: string;
  collections?: readonly string[];
  /** The address by which a followed product is known; none where it is not followed. */
  followed?: string;
  /** The version that was downloaded here last, by channel. */
  fetched?: Readonly<Record<string, string>>;
}

type NotesByProduct = Readonly<Record<string, ProductNotes>>;

/** By the product's id. */
export const productNotes = signal<NotesByProduct>({});

const storageKey = () => `countersign-shelf ${me.peek()?.email ?? ""}`;

function read(): NotesByProduct {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(storageKey()) ?? "{}");
    return found !== null && typeof found === "object" ? (found as NotesByProduct) : {};
  } catch {
    // What is no longer readable is as good as not noted.
    return {};
  }
}

effect(() => {
  if (me.value !== undefined) {
    productNotes.value = read();
  }
});

// Another tab of the same person has noted something.
addEventListener("storage", (event) => {
  if (event.key === storageKey()) {
    productNotes.value = read();
  }
});

/** Note something about a product; what is empty is forgotten. */
export function updateNotes(id: string, change: ProductNotes): void {
  const noted = Object.entries({ ...productNotes.peek()[id], ...change }).filter(([, value]) => (Array.isArray(value) ? value.length : value));
  const { [id]: _, ...others } = productNotes.peek();
  const next: NotesByProduct = noted.length ? { ...others, [id]: Object.fromEntries(noted) as ProductNotes } : others;
  try {
    localStorage.setItem(storageKey(), JSON.stringify(next));
    productNotes.value = next;
  } catch {
    // The browser lets this site keep nothing, or no more.
    showToast(tLibrary("shelf.full"));
  }
}

/** Remember which version was downloaded here. */
export function recordDownload(id: string, { channel, version }: Newest): void {
  updateNotes(id, { fetched: { ...productNotes.peek()[id]?.fetched, [channel]: version } });
}

export function clearNotes(): void {
  localStorage.removeItem(storageKey());
  productNotes.value = {};
}

/** Every collection that something is in, in the order of the alphabet. */
export function allCollections(): string[] {
  return [...new Set(Object.values(productNotes.value).flatMap((each) => each.collections ?? []))].sort((a, b) => a.localeCompare(b));
}

interface Newest {
  channel: string;
  version: string;
}

/** The newest release of a channel from which another version was downloaded here; none where there is nothing newer. */
export function newerRelease<Release extends Newest>(id: string, channels: readonly Release[]): Release | undefined {
  const fetched = productNotes.value[id]?.fetched ?? {};
  return channels.find((each) => fetched[each.channel] !== undefined && fetched[each.channel] !== each.version);
}
