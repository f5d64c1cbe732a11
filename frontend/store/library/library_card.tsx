// A product of the library as a card or a row, and an available update as a card.
import { Chip } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { sinceWhen, size, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { CoverImage, publisherOf } from "../card";
import { currentPlatform, PLATFORMS } from "../platform";
import { PlatformMarks } from "../platform_marks";
import { DownloadNow } from "./download_now";
import { updateOf } from "./newer_version";

const tLibrary = translator("library");
const t = translator("store");

type OwnedProduct = Schemas["Owned"];

interface Props {
  product: OwnedProduct;
  onOpen: (product: OwnedProduct) => void;
}

export function LibraryCard({ product, isFirst, onOpen }: Props & { isFirst: boolean }) {
  const update = updateOf(product);
  return (
    <li class="card">
      <div class="cover">
        <CoverImage product={product} sizes="(max-width: 760px) 50vw, 240px" isFirst={isFirst} />
        {update && <span class="flag">{tLibrary("update.flag")}</span>}
      </div>
      <h3>
        <a class="cut" href={`/products/${product.slug}`}>
          {product.title}
        </a>
      </h3>
      <p class="by cut">{publisherOf(product)}</p>
      <p class="meta">
        <span class="num cut">{versionOf(product)}</span>
        <Download product={product} onOpen={onOpen} />
      </p>
      <NoteMark product={product} />
      <ManageButton product={product} onOpen={onOpen} />
    </li>
  );
}

export function LibraryRow({ product, onOpen }: Props) {
  const update = updateOf(product);
  return (
    <li class="product-row">
      <CoverImage product={product} sizes="96px" />
      <div class="grow">
        <h3>
          <a href={`/products/${product.slug}`}>{product.title}</a>
        </h3>
        <p class="quiet cut">{publisherOf(product)}</p>
        <NoteMark product={product} />
      </div>
      {update && <Chip tone="info">{tLibrary("update.flag")}</Chip>}
      <span class="wide-only">
        <PlatformMarks platforms={product.platforms} />
      </span>
      <span class="quiet num wide-only">{versionOf(product)}</span>
      <span class="meta-actions">
        <Download product={product} onOpen={onOpen} />
        <ManageButton product={product} onOpen={onOpen} />
      </span>
    </li>
  );
}

/** An available update of a downloaded product. */
export function UpdateCard({ product, onOpen }: Props) {
  const update = updateOf(product);
  if (!update) {
    return null;
  }
  return (
    <li class="panel-box">
      <CoverImage product={product} sizes="112px" />
      <div class="grow">
        <h3>
          <a class="cut" href={`/products/${product.slug}?channel=${update.channel}`}>
            {product.title}
          </a>
        </h3>
        <p class="num">
          <b>{update.version}</b> · {tLibrary("update.had", { had: update.downloadedVersion })}
        </p>
        <p>{update.size === null ? sinceWhen(update.published_at) : tLibrary("update.size", { size: size(update.delta_size ?? update.size), platform: PLATFORMS[currentPlatform] })}</p>
      </div>
      <DownloadNow product={product} label={t("get")} channel={update.channel} isIcon onOther={() => onOpen(product)} />
    </li>
  );
}

function versionOf(product: OwnedProduct): string {
  const stable = product.channels.find((channel) => channel.channel === "stable") ?? product.channels[0];
  return stable?.version ?? "";
}

/** The download button, or nothing if the product has no release. */
function Download({ product, onOpen }: Props) {
  const update = updateOf(product);
  return product.channels.length > 0 ? (
    <DownloadNow
      product={product}
      label={update ? tLibrary("update.flag") : t("get")}
      channel={update?.channel}
      onOther={() => onOpen(product)}
    />
  ) : null;
}

/** Opens all files of the product, its notes and its collections. */
function ManageButton({ product, onOpen }: Props) {
  return (
    <button type="button" class="get-more" aria-haspopup="dialog" aria-label={tLibrary("manage", { title: product.title })} onClick={() => onOpen(product)}>
      <Icon name="ellipsis" />
    </button>
  );
}

/** The person's note. */
function NoteMark({ product: { note, hidden } }: { product: OwnedProduct }) {
  if (!note && !hidden) {
    return null;
  }
  return (
    <div class="noted">
      {hidden && (
        <span class="row">
          <Chip>{tLibrary("library.hidden")}</Chip>
        </span>
      )}
      {note && <p class="written">{note}</p>}
    </div>
  );
}
