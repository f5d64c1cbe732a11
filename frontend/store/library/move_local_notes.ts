// Moves the notes that earlier versions kept in this browser to the account.
import { api, type Schemas } from "../api";
import { recordDownload } from "../downloaded_versions";
import { me } from "../me";
import { createCollection, library } from "./library_state";

interface LocalNotes {
  isHidden?: boolean;
  note?: string;
  collections?: readonly string[];
  followed?: string;
  /** The last downloaded version, by channel. */
  fetched?: Readonly<Record<string, string>>;
}

type NotesByProduct = Readonly<Record<string, LocalNotes>>;

/** Move the notes after the library was loaded. Return whether a note was moved. Refused notes stay for the next time. */
export async function moveLocalNotes(): Promise<boolean> {
  const key = `countersign-shelf ${me.peek()?.email ?? ""}`;
  let isMoved = false;
  for (const [id, notes] of Object.entries(readNotes(key))) {
    const { [id]: _, ...otherNotes } = readNotes(key);
    // Remove it first, so that another tab does not move it as well.
    write(key, otherNotes);
    try {
      await move(id, notes);
      isMoved = true;
    } catch {
      write(key, { ...readNotes(key), [id]: notes });
    }
  }
  return isMoved;
}

async function move(id: string, { isHidden, note, collections = [], followed, fetched = {} }: LocalNotes): Promise<void> {
  if (followed) {
    await api.put("/api/v1/me/follows/product/{id}", { values: { id } });
  }
  const product = library.peek()?.find((owned) => owned.id === id);
  if (product) {
    await moveToLibrary(product, isHidden === true, note ?? "", collections);
  }
  // Send the stable version last, because the library shows the last one.
  const channels = Object.keys(fetched).sort((a, b) => Number(a === "stable") - Number(b === "stable"));
  for (const channel of channels) {
    await recordDownload(id, { channel, version: fetched[channel] ?? "" }, null);
  }
}

/** Move the notes of one product, without replacing what the account already has. */
async function moveToLibrary(product: Schemas["Owned"], isHidden: boolean, note: string, names: readonly string[]): Promise<void> {
  const { id } = product;
  const change = { ...(isHidden && { hidden: true }), ...(note && !product.note && { note }) };
  if (Object.keys(change).length > 0) {
    await api.patch("/api/v1/library/{id}", { values: { id }, body: change });
  }
  for (const name of names) {
    const collection_id = (await createCollection(name)).id;
    await api.put("/api/v1/me/collections/{collection_id}/items/{id}", { values: { collection_id, id } });
  }
}

function readNotes(key: string): NotesByProduct {
  try {
    const storedValue: unknown = JSON.parse(localStorage.getItem(key) ?? "{}");
    return storedValue !== null && typeof storedValue === "object" ? (storedValue as NotesByProduct) : {};
  } catch {
    return {};
  }
}

function write(key: string, notes: NotesByProduct): void {
  if (Object.keys(notes).length === 0) {
    localStorage.removeItem(key);
  } else {
    localStorage.setItem(key, JSON.stringify(notes));
  }
}
