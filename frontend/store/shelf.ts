// What a person notes about products for nobody but themselves: it stays in this browser, apart for each of its people.
import { effect, signal } from "@preact/signals";
import { showToast } from "../shared/toast";
import { me } from "./me";
import { translator } from "../shared/i18n";

const tLibrary = translator("library");

export interface Noted {
  isHidden?: boolean;
  note?: string;
  collections?: readonly string[];
  /** The address by which a followed product is known; none where it is not followed. */
  followed?: string;
  /** The version that was downloaded here last, by channel. */
  fetched?: Readonly<Record<string, string>>;
}

type Shelf = Readonly<Record<string, Noted>>;

/** By the product's id. */
export const shelf = signal<Shelf>({});

const name = () => `countersign-shelf ${me.peek()?.email ?? ""}`;

function read(): Shelf {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(name()) ?? "{}");
    return found !== null && typeof found === "object" ? (found as Shelf) : {};
  } catch {
    // What is no longer readable is as good as not noted.
    return {};
  }
}

effect(() => {
  if (me.value !== undefined) {
    shelf.value = read();
  }
});

// Another tab of the same person has noted something.
addEventListener("storage", (event) => {
  if (event.key === name()) {
    shelf.value = read();
  }
});

/** Note something about a product; what is empty is forgotten. */
export function note(id: string, change: Noted): void {
  const noted = Object.entries({ ...shelf.peek()[id], ...change }).filter(([, value]) => (Array.isArray(value) ? value.length : value));
  const { [id]: _, ...others } = shelf.peek();
  const next: Shelf = noted.length ? { ...others, [id]: Object.fromEntries(noted) as Noted } : others;
  try {
    localStorage.setItem(name(), JSON.stringify(next));
    shelf.value = next;
  } catch {
    // The browser lets this site keep nothing, or no more.
    showToast(tLibrary("shelf.full"));
  }
}

/** Remember which version was downloaded here. */
export function fetched(id: string, { channel, version }: Newest): void {
  note(id, { fetched: { ...shelf.peek()[id]?.fetched, [channel]: version } });
}

export function forgetAll(): void {
  localStorage.removeItem(name());
  shelf.value = {};
}

/** Every collection that something is in, in the order of the alphabet. */
export function collections(): string[] {
  return [...new Set(Object.values(shelf.value).flatMap((each) => each.collections ?? []))].sort((a, b) => a.localeCompare(b));
}

interface Newest {
  channel: string;
  version: string;
}

/** The newest release of a channel from which another version was downloaded here; none where there is nothing newer. */
export function newer<Release extends Newest>(id: string, channels: readonly Release[]): Release | undefined {
  const fetched = shelf.value[id]?.fetched ?? {};
  return channels.find((each) => fetched[each.channel] !== undefined && fetched[each.channel] !== each.version);
}
