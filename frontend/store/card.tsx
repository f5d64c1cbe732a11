// A product as a card: cover, name, publisher, platforms and access.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Icon } from "../shared/components/icon";
import { translator } from "../shared/i18n";
import { coverOf, flagOf, type CatalogItem } from "./catalog_item";
import { ownedIds, useOwnedState } from "./owned_and_followed";
import { PlatformMarks } from "./platform_marks";

const t = translator("store");

const SIZES = "(max-width: 760px) 66vw, 290px";

interface Props {
  product: CatalogItem;
  /** The level of its heading. */
  level?: 2 | 3;
  /** Whether the card is on the first screen, so that its cover is loaded at once. */
  isFirst?: boolean;
  /** The flag on the cover, instead of the usual flag. */
  flag?: string | undefined;
  /** Shown below the card. */
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

/** The cover. Its alternative text is empty, because the product's name is beside it. */
export function CoverImage({ product, sizes, isFirst = false, class: name }: ImageProps) {
  const cover = coverOf(product);
  const types = [...new Set(cover.srcset.map((image) => image.type))];
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
            .filter((image) => image.type === type)
            .map((image) => `${image.url} ${image.width}w`)
            .join(", ")}
        />
      ))}
      {image}
    </picture>
  );
}

/** The flag of a new product, or of a product with a new version. */
function Flag({ product, words }: { product: CatalogItem; words?: string | undefined }) {
  const flag = flagOf(product);
  const text = words ?? (flag === "new" ? t("flag.new") : flag && t("flag.update", { version: product.latest?.version ?? "" }));
  return text ? <span class="flag">{text}</span> : null;
}

/** The access to a product: owned, free, or with a code. */
export function Access({ product }: { product: Pick<CatalogItem, "id" | "access"> }) {
  useOwnedState(product.id ?? "");
  if (product.id && ownedIds.value.has(product.id)) {
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
