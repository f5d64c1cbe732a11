// A product as a card: its cover, its name and publisher, where it runs, and how it may be had.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Icon } from "../shared/components/icon";
import { translator } from "../shared/i18n";
import { coverOf, flagOf, type CatalogItem } from "./catalog_item";
import { owned, useOwnedState } from "./owned";
import { PlatformMarks } from "./platform_marks";

const t = translator("store");

const SIZES = "(max-width: 760px) 66vw, 290px";

interface Props {
  product: CatalogItem;
  /** The level of its heading, below the heading that it stands under. */
  level?: 2 | 3;
  /** It is on the screen at once: its cover is not left for later. */
  isFirst?: boolean;
  /** What marks its cover here, in place of what is said of it everywhere. */
  flag?: string | undefined;
  /** What stands below it here. */
  children?: ComponentChildren;
}

export function Card({ product, level = 3, isFirst = false, flag, children }: Props) {
  const id = useId();
  const Title = `h${level}` as "h3";
  const summary = product.summary ?? "";
  return (
    <li class="card">
      <div class="cover">
        <CoverImage product={product} sizes={SIZES} isFirst={isFirst} />
        <Flag product={product} words={flag} />
        {summary && (
          <p class="summary-tip" id={id}>
            {summary}
          </p>
        )}
      </div>
      <Title>
        <a class="cut" href={`/products/${product.slug}`} aria-describedby={summary ? id : undefined}>
          {product.title}
        </a>
      </Title>
      {publisherOf(product) && <p class="by cut">{publisherOf(product)}</p>}
      <p class="meta">
        <PlatformMarks platforms={product.platforms} />
        <Access product={product} />
      </p>
      {children}
    </li>
  );
}

export function publisherOf({ publisher, org }: CatalogItem): string {
  return publisher?.name ?? org ?? "";
}

interface ImageProps {
  product: Pick<CatalogItem, "slug" | "cover">;
  sizes?: string;
  isFirst?: boolean;
  class?: string;
}

/** The cover; its text is empty where the product's name stands beside it. */
export function CoverImage({ product, sizes, isFirst = false, class: name }: ImageProps) {
  const cover = coverOf(product);
  const types = [...new Set(cover.srcset.map((each) => each.type))];
  const image = (
    <img class={name} src={cover.url} alt="" width={640} height={360} loading={isFirst ? undefined : "lazy"} decoding="async" />
  );
  if (!types.length) {
    return image;
  }
  return (
    <picture>
      {types.map((type) => (
        <source
          key={type}
          type={type}
          sizes={sizes}
          srcset={cover.srcset
            .filter((each) => each.type === type)
            .map((each) => `${each.url} ${each.width}w`)
            .join(", ")}
        />
      ))}
      {image}
    </picture>
  );
}

/** That a product is new, or its latest version is; never both. */
function Flag({ product, words }: { product: CatalogItem; words?: string | undefined }) {
  const flag = flagOf(product);
  const text = words ?? (flag === "new" ? t("flag.new") : flag && t("flag.update", { version: product.latest?.version ?? "" }));
  return text ? <span class="flag">{text}</span> : null;
}

/** How a product may be had: exactly one of owned, free, or with a code. */
export function Access({ product }: { product: Pick<CatalogItem, "id" | "access"> }) {
  useOwnedState(product.id ?? "");
  if (product.id && owned.value.has(product.id)) {
    return (
      <span class="access own">
        <Icon name="check" size="s" />
        {t("owned")}
      </span>
    );
  }
  if (product.access === "free") {
    return <span class="access free">{t("free")}</span>;
  }
  return product.access ? (
    <span class="access">
      <Icon name="key-round" size="s" />
      {t("entitled")}
    </span>
  ) : null;
}
