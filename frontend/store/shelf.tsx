// A row of cards that scrolls sideways, with a heading and a link to all of them.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../shared/components/icon";
import { translator } from "../shared/i18n";
import { Card } from "./card";
import type { CatalogItem } from "./catalog_item";

const t = translator("store");

/** The minimum number of products; a shelf with fewer is not shown. */
const MIN_PRODUCTS = 3;
const EDGE_PX = 8;

interface Props {
  title: string;
  note?: string;
  allAddress?: string | undefined;
  products: readonly CatalogItem[];
  /** Whether it is on the first screen. */
  isFirst?: boolean;
}

export function Shelf({ title, note, allAddress, products, isFirst = false }: Props) {
  const row = useRef<HTMLUListElement>(null);
  const [scrollEnds, setScrollEnds] = useState({ atStart: true, atEnd: false });
  const measure = () => {
    const list = row.current;
    if (list) {
      const scroll_px = Math.abs(list.scrollLeft);
      setScrollEnds({ atStart: scroll_px < EDGE_PX, atEnd: scroll_px + list.clientWidth > list.scrollWidth - EDGE_PX });
    }
  };
  useEffect(measure, [products]);
  if (products.length < MIN_PRODUCTS) {
    return null;
  }
  const scroll = (direction: 1 | -1) => row.current?.scrollBy({ left: direction * row.current.clientWidth * 0.8, behavior: "smooth" });
  const arrow = (direction: 1 | -1, isHidden: boolean) => (
    // For the mouse only: the keyboard moves through the cards, and the row scrolls along.
    <button type="button" class={direction > 0 ? "arrow end" : "arrow"} tabIndex={-1} aria-hidden="true" hidden={isHidden} onClick={() => scroll(direction)}>
      <Icon name={direction > 0 ? "chevron-right" : "chevron-left"} size="l" />
    </button>
  );
  return (
    <section class="shelf" aria-label={title}>
      <ShelfHead title={title} {...(note ? { note } : {})} allAddress={allAddress} />
      <div class="shelf-frame">
        <ul class="shelf-row" ref={row} onScroll={measure}>
          {products.map((shownProduct, index) => (
            <Card key={shownProduct.id} product={shownProduct} isFirst={isFirst && index < 6} />
          ))}
        </ul>
        {arrow(-1, scrollEnds.atStart)}
        {arrow(1, scrollEnds.atEnd)}
      </div>
    </section>
  );
}

/** A heading with a note beside it, and a link to the complete list. */
export function ShelfHead({ title, note, allAddress }: { title: string; note?: string; allAddress?: string | undefined }) {
  return (
    <div class="shelf-head">
      <h2>{title}</h2>
      {note && <p>{note}</p>}
      {allAddress && (
        <a href={allAddress} class="right">
          {t("all")}
          <span class="hidden-text">: {title}</span>
          <Icon name="chevron-right" />
        </a>
      )}
    </div>
  );
}
