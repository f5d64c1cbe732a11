// The person's favourites: named pages. The service stores them as records of the model `favourite`.
import { signal } from "@preact/signals";
import { Problem } from "../../shared/problem";
import { showToast } from "../../shared/toast";
import { translator } from "../../shared/i18n";
import { runOrPropose, type Meta, type Row, run } from "../api";
import { mayRun, modelOf } from "../models";
import { ownCondition } from "../ownership";

const t = translator("work");

export interface Favourite extends Row {
  name: string;
  path: string;
  position: number;
}

const FAVOURITE = "favourite";
const MAX_FAVOURITES = 100;
const LAST_POSITION = 1000;

/** In their order; null until they are loaded. */
export const favourites = signal<readonly Favourite[] | null>(null);

/** Whether this person may have favourites. */
export function hasFavourites(meta: Meta): boolean {
  const model = modelOf(meta, FAVOURITE);
  return model !== undefined && mayRun(model, "list") && mayRun(model, "create") && mayRun(model, "delete");
}

/** Load the favourites. The returned function aborts the request. Without favourites the sidebar has no group for them. */
export function loadFavourites(meta: Meta): () => void {
  const controller = new AbortController();
  const readFavourites = async () => {
    const ownFilter = await ownCondition(meta, controller.signal);
    const order = [{ field: "position", dir: "asc" }];
    const favouritesPage = await run<Favourite[]>(FAVOURITE, "list", { filter: ownFilter ? [ownFilter] : [], order, limit: MAX_FAVOURITES }, controller.signal);
    favourites.value = favouritesPage.value;
  };
  favourites.value = null;
  if (hasFavourites(meta)) {
    readFavourites().catch(() => undefined);
  }
  return () => controller.abort();
}

/** Add the page to the favourites, or remove it. An error is shown as a toast. */
export async function toggleFavourite(path: string, name: string): Promise<void> {
  const allFavourites = favourites.peek() ?? [];
  const favourite = allFavourites.find((favourite) => favourite.path === path);
  try {
    if (favourite) {
      await runOrPropose(FAVOURITE, "delete", { id: favourite.id, revision: favourite.revision });
      favourites.value = (favourites.peek() ?? []).filter((other) => other.id !== favourite.id);
      return;
    }
    const position = Math.min(LAST_POSITION, Math.max(-1, ...allFavourites.map((favourite) => favourite.position ?? 0)) + 1);
    const outcome = await runOrPropose<Favourite>(FAVOURITE, "create", { name: name.slice(0, 200), path, position });
    if (outcome.isDone) {
      favourites.value = [...(favourites.peek() ?? []), outcome.value];
    } else {
      showToast(t("favourite.proposed"));
    }
  } catch (error) {
    showToast(Problem.from(error).message);
  }
}
