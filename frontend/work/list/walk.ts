// The place of a record in the list that it was opened from, so that its page leads to the next one.
import { type Model, type Row, run } from "../api";
import { may } from "../models";

const KEY = "countersign-walk";

export interface Place {
  model: string;
  /** The record at this place. */
  id: string;
  /** Filter and order, as the API takes them. */
  input: object;
  index: number;
  total: number | null;
}

export function rememberPlace(place: Place): void {
  sessionStorage.setItem(KEY, JSON.stringify(place));
}

/** Where this record is in the list; null where it was not opened from one. */
export function placeOf(model: Model, id: string): Place | null {
  const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Place | null;
  return kept?.model === model.name && kept.id === id && may(model, "list") ? kept : null;
}

/** The record before or after this place, which then is the one that is remembered; null at an end. */
export async function walk(model: Model, place: Place, by: 1 | -1): Promise<string | null> {
  const index = place.index + by;
  if (index < 0) {
    return null;
  }
  const found = await run<Row[]>(model.name, "list", { ...place.input, limit: 1, offset: index }).catch(() => null);
  const id = found?.value[0]?.id;
  if (id) {
    rememberPlace({ ...place, index, id });
  }
  return id ?? null;
}
