// A product as a row of a list.
import { sinceWhen, translator } from "../shared/i18n";
import { Access, CoverImage, publisherOf } from "./card";
import type { CatalogItem } from "./catalog_item";
import { PlatformMarks } from "./platform_marks";

const t = translator("store");

export function ProductRow({ product }: { product: CatalogItem }) {
  const { latest } = product;
  return (
    <li class="product-row">
      <CoverImage product={product} sizes="96px" />
      <div class="grow">
        <h2>
          <a href={`/products/${product.slug}`}>{product.title}</a>
        </h2>
        <p class="quiet cut">{[publisherOf(product), product.summary].filter(Boolean).join(" · ")}</p>
      </div>
      <span class="wide-only">
        <PlatformMarks platforms={product.platforms} />
      </span>
      {latest && (
        <span class="quiet num wide-only">
          {latest.version} · {sinceWhen(latest.published_at)}
        </span>
      )}
      {!latest && <span class="quiet wide-only">{t(`kind.${product.kind}`)}</span>}
      <Access product={product} />
    </li>
  );
}
