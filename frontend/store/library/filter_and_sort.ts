// Filters and sorts the products of the library by the parameters in the address.
import { query } from "../../shared/router";
import type { Schemas } from "../api";
import { collectionsOf } from "./library_state";
import { updateOf } from "./newer_version";

type OwnedProduct = Schemas["Owned"];

export const ORDERS = ["", "updated", "title"] as const;

/** The time of its last release, or of its grant if it has no release. */
function updated(product: OwnedProduct): string {
  return product.channels.reduce((newest, channel) => (channel.published_at > newest ? channel.published_at : newest), "") || product.granted_at;
}

export function filterAndSort(products: readonly OwnedProduct[], typedText: string): OwnedProduct[] {
  const searchText = typedText.trim().toLocaleLowerCase();
  const collection = query.value.get("collection");
  const isHidden = query.value.get("hidden") === "1";
  const kind = query.value.get("kind");
  const access = query.value.get("access");
  const isUpdate = query.value.get("update") === "1";
  const matches = products.filter((product) => {
    const collectionNames = collectionsOf(product);
    const searchedText = [product.title, product.description, product.note, ...collectionNames].join(" ").toLocaleLowerCase();
    return (
      searchedText.includes(searchText) &&
      isHidden === product.hidden &&
      (!kind || product.kind === kind) &&
      (!access || product.access === access) &&
      (!isUpdate || updateOf(product) !== undefined) &&
      (!collection || collectionNames.includes(collection))
    );
  });
  const order = query.value.get("order");
  if (order === "title") {
    return matches.sort((a, b) => a.title.localeCompare(b.title));
  }
  return order === "updated" ? matches.sort((a, b) => updated(b).localeCompare(updated(a))) : matches;
}
