// Filters and sorts the products of the library by the parameters in the address.
import { query } from "../../shared/router";
import type { Schemas } from "../api";
import { collectionsOf } from "./library_state";
import { updateOf } from "./update_of";

type Owned = Schemas["Owned"];

export const ORDERS = ["", "updated", "title"] as const;

/** The time of its last release, or of its grant if it has no release. */
function updated(product: Owned): string {
  return product.channels.reduce((latest, each) => (each.published_at > latest ? each.published_at : latest), "") || product.granted_at;
}

export function filterAndSort(owned: readonly Owned[], words: string): Owned[] {
  const searchText = words.trim().toLocaleLowerCase();
  const collection = query.value.get("collection");
  const isHidden = query.value.get("hidden") === "1";
  const kind = query.value.get("kind");
  const access = query.value.get("access");
  const isUpdate = query.value.get("update") === "1";
  const matches = owned.filter((each) => {
    const collectionNames = collectionsOf(each);
    const searchedText = [each.title, each.description, each.note, ...collectionNames].join(" ").toLocaleLowerCase();
    return (
      searchedText.includes(searchText) &&
      isHidden === each.hidden &&
      (!kind || each.kind === kind) &&
      (!access || each.access === access) &&
      (!isUpdate || updateOf(each) !== undefined) &&
      (!collection || collectionNames.includes(collection))
    );
  });
  const order = query.value.get("order");
  if (order === "title") {
    return matches.sort((a, b) => a.title.localeCompare(b.title));
  }
  return order === "updated" ? matches.sort((a, b) => updated(b).localeCompare(updated(a))) : matches;
}
