// A cache of referenced records. Each is requested once, in batches, and kept until the page is closed.
import { signal, type Signal } from "@preact/signals";
import { type Model, type Row, run } from "./api";
import { may } from "./models";

const MOST = 500;
const known = new Map<string, Signal<Row | null>>();
const waiting = new Map<Model, Set<string>>();

/** The record with this id; null until it is loaded, or if this person may not see it. */
export function referencedRecord(model: Model, id: string): Signal<Row | null> {
  const key = `${model.name}/${id}`;
  let found = known.get(key);
  if (!found) {
    found = signal(null);
    known.set(key, found);
    const ids = waiting.get(model) ?? new Set();
    if (waiting.size === 0) {
      setTimeout(() => void fetchAll(), 0);
    }
    waiting.set(model, ids.add(id));
  }
  return found;
}

/** Add records that were loaded for another reason. */
export function cacheRecords(model: Model, rows: readonly Row[]): void {
  for (const row of rows) {
    const key = `${model.name}/${row.id}`;
    const found = known.get(key);
    if (found) {
      found.value = row;
    } else {
      known.set(key, signal(row));
    }
  }
}

async function fetchAll(): Promise<void> {
  const asked = [...waiting];
  waiting.clear();
  for (const [model, ids] of asked) {
    if (!may(model, "list")) {
      continue;
    }
    const several = [...ids];
    for (let from = 0; from < several.length; from += MOST) {
      const filter = [{ field: "id", op: "in", value: several.slice(from, from + MOST) }];
      const found = await run<Row[]>(model.name, "list", { filter, limit: MOST }).catch(() => null);
      cacheRecords(model, found?.value ?? []);
    }
  }
}

const RECENT = 5;

/** The ids of the records of a model that were last chosen or opened in this tab, newest first. */
export function recentIds(model: string): string[] {
  return JSON.parse(sessionStorage.getItem(`recent:${model}`) ?? "[]") as string[];
}

export function rememberVisit(model: string, id: string): void {
  const rest = recentIds(model).filter((each) => each !== id);
  sessionStorage.setItem(`recent:${model}`, JSON.stringify([id, ...rest].slice(0, RECENT)));
}
