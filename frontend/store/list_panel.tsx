// A short list in a panel: small cover, name, publisher and version, and the release date, the number of downloads or the
// access.
import { daysAgo, plural, translator } from "../shared/i18n";
import { Access, CoverImage, publisherOf } from "./card";
import type { CatalogItem } from "./catalog_item";

const t = translator("store");

interface Props {
  title: string;
  allAddress: string;
  /** Null while it is loading. */
  products: readonly CatalogItem[] | null;
  /** The number of downloads of each product, shown instead of the release date. */
  downloads?: readonly number[] | undefined;
  /** Whether the access to each product is shown instead of the release date. */
  showsAccess?: boolean;
}

export function ListPanel({ title, allAddress, products, downloads, showsAccess = false }: Props) {
  return (
    <section class="panel-box list-panel" aria-label={title}>
      <h2>
        {title}
        <a href={allAddress}>
          {t("all")}
          <span class="hidden-text">: {title}</span>
        </a>
      </h2>
      <ul>
        {products?.map((listedProduct, index) => (
          <li key={listedProduct.id}>
            <CoverImage product={listedProduct} sizes="72px" />
            <span class="grow">
              <a class="cut" href={`/products/${listedProduct.slug}`}>
                {listedProduct.title}
              </a>
              <span class="quiet small cut">{[publisherOf(listedProduct), listedProduct.latest?.version].filter(Boolean).join(" · ")}</span>
            </span>
            {showsAccess ? <Access product={listedProduct} /> : <ProductDate product={listedProduct} downloads={downloads?.[index]} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function ProductDate({ product: { latest }, downloads }: { product: CatalogItem; downloads: number | undefined }) {
  if (downloads !== undefined) {
    return <span class="quiet small num whole">{plural(downloads, t("downloads.count.one"), t("downloads.count"))}</span>;
  }
  return latest ? (
    <time class="quiet small" dateTime={latest.published_at}>
      {daysAgo(latest.published_at)}
    </time>
  ) : null;
}
