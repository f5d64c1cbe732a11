// A product as a card in a list.
import type { ComponentChildren } from "preact";
import { Chip } from "../shared/components/chip";
import type { Schemas } from "./api";
import { PLATFORMS } from "./platform";
import { translator } from "../shared/i18n";

const t = translator("store");

type Product = Schemas["Product"];

interface Props {
  product: Pick<Product, "slug" | "title" | "description" | "kind" | "platforms">;
  /** A line about it in this place. */
  note?: string | undefined;
  /** The whole card leads to the product, unless there is more to press in it. */
  children?: ComponentChildren;
}

export function ProductCard({ product, note, children }: Props) {
  return (
    <li class={children ? "card plain" : "card"}>
      <h2>
        <a href={`/products/${product.slug}`}>{product.title}</a>
      </h2>
      <p>{product.description}</p>
      {note && <span class="small">{note}</span>}
      <span class="row">
        <Chip>{t(`kind.${product.kind}`)}</Chip>
        <span class="small quiet">{product.platforms.map((name) => PLATFORMS[name]).join(", ")}</span>
      </span>
      {children}
    </li>
  );
}
