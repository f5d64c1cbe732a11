// What the latest versions of products bring, from the first line of their release notes.
import { useRequest } from "../shared/request";
import { translator } from "../shared/i18n";
import { api, type Schemas } from "./api";
import type { CatalogItem } from "./catalog_item";

const t = translator("store");

type News = ReadonlyMap<string, string>;

/** A line for each of the products whose latest version has notes, by id; null while they are loading. One request reads
 *  the notes of all of them. */
export function useNews(products: readonly CatalogItem[]): News | null {
  const ids = products.map((each) => each.id).join();
  const found = useRequest((signal) => readNews(products, signal), [ids]);
  return found.state === "loading" ? null : found.state === "loaded" ? found.value : new Map();
}

async function readNews(products: readonly CatalogItem[], signal: AbortSignal): Promise<News> {
  if (!products.length) {
    return new Map();
  }
  const operations = products.map(({ id, latest }) => ({
    method: "GET" as const,
    path: `/products/${id}/releases?channel=${latest?.channel}&limit=1`,
    body: null,
    headers: null,
  }));
  const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, signal })).value;
  const news = new Map<string, string>();
  products.forEach(({ id, latest }, place) => {
    const answer = results[place];
    // A batch wraps the array of a list in an object.
    const release = answer?.status === 200 ? (answer.body as unknown as { items: Schemas["Release"][] }).items[0] : undefined;
    const line = release && release.version === latest?.version ? newsOf(release.notes ?? "") : null;
    if (id && line) {
      news.set(id, line);
    }
  });
  return news;
}

/** The heading or the bold words that notes begin with, as what is new; else their first line, without Markdown. */
function newsOf(notes: string): string | null {
  const line = notes.split("\n").find((each) => each.trim()) ?? "";
  const title = /^\s*(?:#{1,6}\s+|(?:[-*+]|\d+[.)])\s+\*\*)([^*#]+)/.exec(line)?.[1]?.trim();
  if (title) {
    return t("home.brings", { what: title });
  }
  const plain = line
    .replace(/^\s*(?:[-*+]|\d+[.)])\s+/, "")
    .replace(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .replace(/[*`]/g, "");
  return plain.trim() || null;
}
