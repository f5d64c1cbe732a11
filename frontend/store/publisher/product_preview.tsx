// The live preview of a product: its card, and the head of its page.
import { Chip } from "../../shared/components/chip";
import { translator } from "../../shared/i18n";
import { Card } from "../card";
import type { CatalogItem } from "../catalog_item";
import { Markdown } from "../markdown";
import { PlatformMarks } from "../platform_marks";
import type { Platform } from "../platform";
import type { ProductInput } from "./product_form";

const tStore = translator("store");
const t = translator("publisher");

interface Props {
  value: ProductInput;
  /** Values that are not in the form: cover and publisher. */
  known: Partial<CatalogItem>;
}

const NO_COVER: NonNullable<CatalogItem["cover"]> = { url: "/logo.svg", srcset: [], color: "", focus: "center", placeholder: true, alt: "" };

export function ProductPreview({ value, known }: Props) {
  const title = value.title || t("preview.title");
  const product: CatalogItem = {
    ...known,
    // A product that is not created yet has no placeholder of its own.
    cover: known.cover ?? NO_COVER,
    slug: known.slug ?? (value.slug || "new"),
    title,
    kind: value.kind,
    platforms: value.platforms as Platform[],
    summary: value.summary ?? "",
    access: value.access ?? "entitled",
  };
  return (
    <aside class={known.cover ? "product-preview" : "product-preview is-new"} aria-label={t("preview")}>
      <h2>{t("preview")}</h2>
      <div inert>
        <ul class="cards">
          <Card product={product} isFirst />
        </ul>
        <article class="panel-box preview-page">
          <p class="small quiet">{[tStore(`kind.${value.kind}`), known.publisher?.name ?? known.org].filter(Boolean).join(" · ")}</p>
          <h3>{title}</h3>
          {value.summary && <p>{value.summary}</p>}
          <p class="row">
            <PlatformMarks platforms={value.platforms as Platform[]} />
            <Chip plain>{tStore(value.access === "free" ? "free" : "entitled")}</Chip>
          </p>
          {value.description && (
            <div class="preview-text">
              <Markdown text={value.description} heading="h4" />
            </div>
          )}
        </article>
      </div>
    </aside>
  );
}
