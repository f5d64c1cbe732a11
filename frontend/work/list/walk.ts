// Remembers the position of a record in the list it was opened from, for the links to the previous and next record.
import { type Model, type Row, run } from "../api";
import { may } from "../models";

const KEY = "countersign-walk";

export interface Place {
  model: string;
  /** The id of the record. */
  id: string;
  /** Filter and order of the list, as input for the API. */
  input: object;
  index: number;
  total: number | null;
}

export function rememberPlace(place: Place): void {
  sessionStorage.setItem(KEY, JSON.stringify(place));
}

/** The position of this record, or null if it was not opened from a list. */
export function placeOf(model: Model, id: string): Place | null {
  const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Place | null;
  return kept?.model === model.name && kept.id === id && may(model, "list") ? kept : null;
}

/** Move to the previous or next record and return its id; null at an end of the list. */
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
