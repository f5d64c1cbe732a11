// A product as lists show it: its cover, flag and access.
import type { Schemas } from "./api";

type Product = Schemas["Product"];
export type Cover = Product["cover"];

/** A product of a list. Some members may be missing if the API only mentions the product. */
export type CatalogItem = Pick<Product, "slug" | "title" | "kind" | "platforms"> &
  Partial<Pick<Product, "id" | "summary" | "cover" | "org" | "publisher" | "latest" | "access">>;

const DAY_MS = 86_400_000;
/** The number of days for which a product, or a version, is marked as new on its cover. */
const COVER_DAYS = { product: 14, version: 7 };

/** The cover of a product, or the placeholder if the cover is unknown. */
export function coverOf({ slug, cover }: Pick<CatalogItem, "slug" | "cover">): Cover {
  return cover ?? { url: `/api/v1/products/${slug}/cover.svg`, srcset: [], color: "", focus: "center", placeholder: true, alt: "" };
}

/** The flag on a cover: the product is new, or else its latest version is. */
export function flagOf({ latest }: Pick<CatalogItem, "latest">, days = COVER_DAYS): "new" | "updated" | null {
  if (!latest) {
    return null;
  }
  const age = (instant: string) => (Date.now() - Date.parse(instant)) / DAY_MS;
  if (age(latest.first_published_at) <= days.product) {
    return "new";
  }
  return age(latest.published_at) <= days.version ? "updated" : null;
}

/** A tag as a label: with a capital letter. */
export function tagLabel(tag: string): string {
  return tag.charAt(0).toLocaleUpperCase() + tag.slice(1);
}

/** The first sentence of a summary, shown below the title, and the others, shown above the description. */
export function splitSummary(summary: string | null | undefined): readonly [lead: string, rest: string] {
  const [, lead, restOfSummary] = /^(.{20,}?[.!?]) +(\p{Lu}.*)$/su.exec(summary ?? "") ?? [];
  return lead && restOfSummary ? [lead, restOfSummary] : [summary ?? "", ""];
}
