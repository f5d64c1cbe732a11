// The person's library in the account: products, notes, collections, hidden products. Hiding a product, and changing the
// collections of a product, are shown at once and undone if they are refused.
import { effect, signal } from "@preact/signals";
import { Problem } from "../../shared/problem";
import { showToast } from "../../shared/toast";
import { api, type Schemas } from "../api";
import { me } from "../me";
import { ownedIds } from "../owned_and_followed";
import { nextCursor } from "../ownership";

type OwnedProduct = Schemas["Owned"];
type Collection = Schemas["Collection"];

const PAGE_SIZE = 100;

/** The library, newest first; null until its first page is loaded. */
export const library = signal<readonly OwnedProduct[] | null>(null);
/** The person's collections, by name. */
export const collections = signal<readonly Collection[]>([]);

effect(() => {
  // Another person signed in: clear the library.
  if (me.value !== undefined) {
    library.value = null;
    collections.value = [];
  }
});

/** Load the whole library. Its first page is shown while the rest is loading. */
export async function loadLibrary(abort: AbortSignal): Promise<void> {
  const collectionsRequest = api.get("/api/v1/me/collections", { signal: abort });
  let loadedProducts: OwnedProduct[] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
    const [page, lists] = await Promise.all([api.get("/api/v1/library", { query, signal: abort }), collectionsRequest]);
    loadedProducts = [...loadedProducts, ...page.value];
    collections.value = lists.value.items;
    ownedIds.value = new Set([...ownedIds.peek(), ...page.value.map((product) => product.id)]);
    cursor = nextCursor(page.headers);
    // If the library was loaded before, replace it only when all pages have arrived.
    if (!cursor || loadedProducts.length > (library.peek()?.length ?? 0)) {
      library.value = loadedProducts;
    }
  } while (cursor);
}

/** The names of the collections that a product is in. */
export function collectionsOf(product: OwnedProduct): string[] {
  return collections.value.filter((collection) => product.collections.includes(collection.id)).map((collection) => collection.name);
}

function show(id: string, change: Partial<OwnedProduct>): void {
  library.value = library.peek()?.map((product) => (product.id === id ? { ...product, ...change } : product)) ?? null;
}

/** Hide or show a product. If the server refuses, a message is shown. */
export async function setHidden(product: OwnedProduct, isHidden: boolean): Promise<void> {
  show(product.id, { hidden: isHidden });
  try {
    await api.patch("/api/v1/library/{id}", { values: { id: product.id }, body: { hidden: isHidden } });
  } catch (error) {
    show(product.id, { hidden: !isHidden });
    showToast(Problem.from(error).message);
  }
}

/** Load the present note of a product, which another tab or device may have changed. Empty without a note, undefined if the
 *  product is no longer in the library.
 *  @throws Problem if the server cannot be reached or refuses it. */
export async function loadNote({ id }: OwnedProduct): Promise<string | undefined> {
  let cursor: string | undefined;
  do {
    // A search by title does not find a title without a letter or digit.
    const page = await api.get("/api/v1/library", { query: { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) } });
    const product = page.value.find((owned) => owned.id === id);
    if (product) {
      return product.note ?? "";
    }
    cursor = nextCursor(page.headers);
  } while (cursor);
  return undefined;
}

/** Load the present note of a product, and show it in the library.
 *  @throws Problem if the server cannot be reached or refuses it. */
export async function reloadNote(product: OwnedProduct): Promise<string> {
  const note = (await loadNote(product)) ?? "";
  show(product.id, { note: note || null });
  return note;
}

/** Write the note of a product; null removes it.
 *  @throws Problem if it is not saved. */
export async function saveNote(product: OwnedProduct, note: string | null): Promise<void> {
  await api.patch("/api/v1/library/{id}", { values: { id: product.id }, body: { note } });
  show(product.id, { note });
}

/** Create a collection, or return the one with this name. */
export async function createCollection(name: string): Promise<Collection> {
  const collection = collections.peek().find((collection) => collection.name === name);
  if (collection) {
    return collection;
  }
  const newCollection = (await api.post("/api/v1/me/collections", { body: { name } })).value;
  collections.value = [...collections.peek(), newCollection].sort((a, b) => a.name.localeCompare(b.name));
  return newCollection;
}

/** Rename a collection. */
export async function renameCollection(id: string, name: string): Promise<void> {
  const renamed = (await api.patch("/api/v1/me/collections/{collection_id}", { values: { collection_id: id }, body: { name } })).value;
  const otherCollections = collections.peek().filter((collection) => collection.id !== id);
  collections.value = [...otherCollections, renamed].sort((a, b) => a.name.localeCompare(b.name));
}

/** Delete a collection; its products stay in the library. */
export async function deleteCollection(id: string): Promise<void> {
  await api.delete("/api/v1/me/collections/{collection_id}", { values: { collection_id: id } });
  collections.value = collections.peek().filter((collection) => collection.id !== id);
}

/** Set the collections of a product by name. Missing collections are created. */
export async function putInCollections(product: OwnedProduct, names: readonly string[]): Promise<void> {
  const previousIds = product.collections;
  try {
    const wantedIds: string[] = [];
    for (const name of names) {
      wantedIds.push((await createCollection(name)).id);
    }
    show(product.id, { collections: wantedIds });
    const values = (collection_id: string) => ({ values: { collection_id, id: product.id } });
    const path = "/api/v1/me/collections/{collection_id}/items/{id}";
    await Promise.all([
      ...wantedIds.filter((id) => !previousIds.includes(id)).map((id) => api.put(path, values(id))),
      ...previousIds.filter((id) => !wantedIds.includes(id)).map((id) => api.delete(path, values(id))),
    ]);
  } catch (error) {
    show(product.id, { collections: previousIds });
    showToast(Problem.from(error).message);
  }
}
