// A large product, and a queue of others beside it. It advances by itself, unless the person prefers reduced motion or has
// the pointer or focus on it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../shared/components/icon";
import { translator } from "../shared/i18n";
import { CoverImage, publisherOf } from "./card";
import type { Schemas } from "./api";
import { coverOf, flagOf, splitSummary, type CatalogItem } from "./catalog_item";
import { PlatformMarks } from "./platform_marks";
import { FollowButton } from "./product/follow";

const t = translator("store");

const TURN_MS = 8000;
/** For how many days the large product has the chip of a new product or version. */
const CHIP_DAYS = { product: 30, version: 30 };

type Product = Schemas["Product"];

interface Props {
  products: readonly Product[];
  /** The most downloaded products. */
  popular: readonly Product[];
}

export function Hero({ products, popular }: Props) {
  const box = useRef<HTMLElement>(null);
  const [slideIndex, setSlideIndex] = useState(0);
  const notes = useMemo(() => notesOf(products, popular), [products, popular]);
  const [isPaused, setPaused] = useState(() => matchMedia("(prefers-reduced-motion: reduce)").matches);
  useEffect(() => {
    if (isPaused || products.length < 2) {
      return undefined;
    }
    const timer = setInterval(() => {
      if (!box.current?.matches(":hover, :focus-within") && !document.hidden) {
        setSlideIndex((index) => (index + 1) % products.length);
      }
    }, TURN_MS);
    return () => clearInterval(timer);
  }, [isPaused, products]);
  const shownProduct = products[slideIndex] ?? products[0];
  if (!shownProduct) {
    return null;
  }
  return (
    <section class="hero" aria-label={t("featured")} ref={box}>
      <Feature key={shownProduct.id} product={shownProduct} />
      <ul class="queue">
        {products.map((slide, index) => (
          <li key={slide.id}>
            <button type="button" aria-current={index === slideIndex ? "true" : undefined} onClick={() => setSlideIndex(index)}>
              <CoverImage product={slide} sizes="104px" isFirst />
              <span class="grow">
                <span class="name">{slide.title}</span>
                <span class="note">{notes[index]}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {products.length > 1 && (
        <button type="button" class="pause" aria-label={t(isPaused ? "featured.play" : "featured.pause")} onClick={() => setPaused(!isPaused)}>
          <Icon name={isPaused ? "play" : "pause"} size="s" />
        </button>
      )}
    </section>
  );
}

function Feature({ product }: { product: CatalogItem }) {
  const cover = coverOf(product);
  // The text is on the left: mirror a placeholder cover if its subject would be behind the text.
  const isTurned = cover.placeholder && cover.focus === "left";
  const flag = flagOf(product, CHIP_DAYS);
  return (
    <article class={isTurned ? "feature turned" : "feature"}>
      <CoverImage product={product} sizes="(max-width: 1080px) 100vw, 1240px" isFirst />
      <div class="feature-text">
        <p class="eyebrow">
          {flag && <span class="chip plain good">{flag === "new" ? t("flag.release") : updateOf(product)}</span>}
          {[t(`kind.${product.kind}`), publisherOf(product)].filter(Boolean).join(" · ")}
        </p>
        <h2>{product.title}</h2>
        {product.summary && <p>{splitSummary(product.summary)[0]}</p>}
        <div class="row">
          <a class="button large light" href={`/products/${product.slug}`}>
            {t(`view.${product.kind}`)}
          </a>
          <FollowButton product={product} isOnPicture />
          <PlatformMarks platforms={product.platforms} />
        </div>
      </div>
    </article>
  );
}

/** The second line of each product in the queue: the first reason to look at it that no product before it has, or else what
 *  the product is, in one sentence. */
function notesOf(products: readonly Product[], popular: readonly Product[]): readonly string[] {
  const usedNotes = new Set<string>();
  const isPopular = new Set(popular.map((product) => product.id));
  return products.map((product) => {
    const flag = flagOf(product, CHIP_DAYS);
    const reasons: readonly (readonly [name: string, text: string, isTrue: boolean])[] = [
      ["new", t("home.month"), flag === "new"],
      ["free", t("home.free"), product.is_free],
      ["version", t("featured.version", { version: product.latest?.version ?? "" }), flag === "updated"],
      ["trailer", t("featured.trailer"), product.has_trailer],
      ["popular", t("featured.popular"), isPopular.has(product.id)],
      ["browser", t("featured.browser"), product.platforms.includes("web")],
    ];
    const [name = "", text = splitSummary(product.summary)[0] || t(`kind.${product.kind}`)] =
      reasons.find(([note, , isTrue]) => isTrue && !usedNotes.has(note)) ?? [];
    usedNotes.add(name);
    return text;
  });
}

function updateOf({ latest }: CatalogItem): string {
  return t("flag.update", { version: latest?.version ?? "" });
}
