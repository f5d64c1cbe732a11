// A product as lists show it: its cover, its flag, and how it may be had.
import type { Schemas } from "./api";

type Product = Schemas["Product"];
export type Cover = Product["cover"];

/** A product of a list, of which parts may be unknown where it is only mentioned. */
export type CatalogItem = Pick<Product, "slug" | "title" | "kind" | "platforms"> &
  Partial<Pick<Product, "id" | "summary" | "cover" | "org" | "publisher" | "latest" | "access">>;

const DAY_MS = 86_400_000;
const NEW_DAYS = 14;
const UPDATE_DAYS = 7;

/** The cover of a product; one whose cover nobody told has the drawn one. */
export function coverOf({ slug, cover }: Pick<CatalogItem, "slug" | "cover">): Cover {
  return cover ?? { url: `/api/v1/products/${slug}/cover.svg`, srcset: [], color: "", focus: "center", placeholder: true, alt: "" };
}

/** What a cover is marked with: that the product is new, or else that its latest version is. */
export function flagOf({ latest }: Pick<CatalogItem, "latest">, now_ms = Date.now()): "new" | "updated" | null {
  if (!latest) {
    return null;
  }
  const age = (at: string) => (now_ms - Date.parse(at)) / DAY_MS;
  if (age(latest.first_published_at) <= NEW_DAYS) {
    return "new";
  }
  return age(latest.published_at) <= UPDATE_DAYS ? "updated" : null;
}
