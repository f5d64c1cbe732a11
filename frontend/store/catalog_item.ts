// A product as lists show it: its cover, flag and access.
import type { Schemas } from "./api";

type Product = Schemas["Product"];
export type Cover = Product["cover"];

/** A product of a list. Some members may be missing if the API only mentions the product. */
export type CatalogItem = Pick<Product, "slug" | "title" | "kind" | "platforms"> &
  Partial<Pick<Product, "id" | "summary" | "cover" | "org" | "publisher" | "latest" | "access">>;

const DAY_MS = 86_400_000;
const NEW_DAYS = 14;
const UPDATE_DAYS = 7;

/** The cover of a product, or the placeholder if the cover is unknown. */
export function coverOf({ slug, cover }: Pick<CatalogItem, "slug" | "cover">): Cover {
  return cover ?? { url: `/api/v1/products/${slug}/cover.svg`, srcset: [], color: "", focus: "center", placeholder: true, alt: "" };
}

/** The flag on a cover: the product is new, or else its latest version is. */
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
