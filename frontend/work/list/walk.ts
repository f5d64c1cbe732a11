// Remembers the position of a record in the list it was opened from, for the links to the previous and next record.
import { type Model, type Row, run } from "../api";
import { may } from "../models";

const STORAGE_KEY = "countersign-walk";

export interface ListPosition {
  model: string;
  /** The id of the record. */
  id: string;
  /** Filter and order of the list, as input for the API. */
  input: object;
  index: number;
  total: number | null;
}

export function storePosition(position: ListPosition): void {
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(position));
}

/** The position of this record, or null if it was not opened from a list. */
export function positionOf(model: Model, id: string): ListPosition | null {
  const stored = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null") as ListPosition | null;
  return stored?.model === model.name && stored.id === id && may(model, "list") ? stored : null;
}

/** Move to the previous or next record and return its id; null at an end of the list. */
export async function walk(model: Model, position: ListPosition, step: 1 | -1): Promise<string | null> {
  const index = position.index + step;
  if (index < 0) {
    return null;
  }
  const response = await run<Row[]>(model.name, "list", { ...position.input, limit: 1, offset: index }).catch(() => null);
  const id = response?.value[0]?.id;
  if (id) {
    storePosition({ ...position, index, id });
  }
  return id ?? null;
}
