// Whether the person may download a product: it is free, they own it, or their organisation publishes it.
import { useEffect, useState } from "preact/hooks";
import { api, type Schemas } from "./api";
import { me } from "./me";

const PAGE = 100;
const MOST_PAGES = 10;

/** Null until it is known. */
export function useOwnsProduct(product: Schemas["ProductDetail"]): boolean | null {
  const [found, setFound] = useState<boolean | null>(null);
  const who = me.value;
  const isOpen = product.access === "free" || Boolean(who?.orgs.includes(product.org));
  useEffect(() => {
    if (!isOpen && who) {
      const controller = new AbortController();
      owns(product.id, controller.signal).then(setFound, () => controller.signal.aborted || setFound(false));
      return () => controller.abort();
    }
    return undefined;
  }, [who, product.id, isOpen]);
  return isOpen || (who === null ? false : found);
}

async function owns(id: string, signal: AbortSignal): Promise<boolean> {
  for await (const ids of ownedProductIds(signal)) {
    if (ids.includes(id)) {
      return true;
    }
  }
  return false;
}

/** The ids of what the person owns, the newest first, a page at a time. */
export async function* ownedProductIds(signal?: AbortSignal): AsyncGenerator<readonly string[]> {
  const aborted = signal ? { signal } : {};
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { value, headers } = await api.get("/api/v1/library", { query: { limit: PAGE, ...(cursor ? { cursor } : {}) }, ...aborted });
    yield value.map((each) => each.id);
    cursor = nextCursor(headers);
    if (!cursor) {
      return;
    }
  }
}

/** The cursor in the link to the next page (RFC 8288), where there is one. */
export function nextCursor(headers: Headers): string | undefined {
  const link = /<([^>]+)>;\s*rel="next"/.exec(headers.get("link") ?? "");
  return (link?.[1] && new URL(link[1], location.href).searchParams.get("cursor")) || undefined;
}
