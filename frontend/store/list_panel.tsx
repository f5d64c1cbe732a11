// A short list in a panel: a small cover, the name, publisher and version, and when it was released.
import { sinceWhen, translator } from "../shared/i18n";
import { CoverImage, publisherOf } from "./card";
import type { CatalogItem } from "./catalog_item";

const t = translator("store");

interface Props {
  title: string;
  all: string;
  /** Null while it is on its way. */
  products: readonly CatalogItem[] | null;
}

export function ListPanel({ title, all, products }: Props) {
  return (
    <section class="panel-box list-panel" aria-label={title}>
      <h2>
        {title}
        <a href={all}>
          {t("all")}
          <span class="hidden-text">: {title}</span>
        </a>
      </h2>
      <ul>
        {products?.map((each) => (
          <li key={each.id}>
            <CoverImage product={each} sizes="72px" />
            <span class="grow">
              <a class="cut" href={`/products/${each.slug}`}>
                {each.title}
              </a>
              <span class="quiet small cut">{[publisherOf(each), each.latest?.version].filter(Boolean).join(" · ")}</span>
            </span>
            {each.latest && (
              <time class="quiet small" dateTime={each.latest.published_at}>
                {sinceWhen(each.latest.published_at)}
              </time>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
