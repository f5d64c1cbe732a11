// Whether the person may download a product: it is free, they own it, or their organisation publishes it.
import { api, type Schemas } from "./api";
import { me } from "./me";
import { ownedIds, useOwnedState } from "./owned_and_followed";

const PAGE_SIZE = 100;
const MAX_PAGES = 10;

/** Whether the person may download the product; null until it is known. */
export function useOwnsProduct(product: Schemas["ProductDetail"]): boolean | null {
  const isKnown = useOwnedState(product.id);
  const person = me.value;
  if (product.access === "free" || person?.orgs.includes(product.org) || ownedIds.value.has(product.id)) {
    return true;
  }
  return person === null || isKnown ? false : null;
}

/** Yield the ids of the owned products, newest first, page by page. */
export async function* ownedProductIds(signal?: AbortSignal): AsyncGenerator<readonly string[]> {
  const aborted = signal ? { signal } : {};
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { value, headers } = await api.get("/api/v1/library", { query: { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) }, ...aborted });
    yield value.map((product) => product.id);
    cursor = nextCursor(headers);
    if (!cursor) {
      return;
    }
  }
}

/** The cursor in the link to the next page (RFC 8288), or undefined on the last page. */
export function nextCursor(headers: Headers): string | undefined {
  const link = /<([^>]+)>;\s*rel="next"/.exec(headers.get("link") ?? "");
  return (link?.[1] && new URL(link[1], location.href).searchParams.get("cursor")) || undefined;
}
