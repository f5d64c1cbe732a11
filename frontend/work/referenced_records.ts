// A cache of referenced records. Each is requested once, in batches, and kept until the page is closed.
import { signal, type Signal } from "@preact/signals";
import { type Model, type Row, run } from "./api";
import { mayRun } from "./models";

const MAX_IDS = 500;
const knownRecords = new Map<string, Signal<Row | null>>();
const waitingIds = new Map<Model, Set<string>>();

/** The record with this id; null until it is loaded, or if this person may not see it. */
export function referencedRecord(model: Model, id: string): Signal<Row | null> {
  const key = `${model.name}/${id}`;
  let recordSignal = knownRecords.get(key);
  if (!recordSignal) {
    recordSignal = signal(null);
    knownRecords.set(key, recordSignal);
    const ids = waitingIds.get(model) ?? new Set();
    if (waitingIds.size === 0) {
      setTimeout(() => void fetchAll(), 0);
    }
    waitingIds.set(model, ids.add(id));
  }
  return recordSignal;
}

/** Add records that were loaded for another reason. */
export function cacheRecords(model: Model, rows: readonly Row[]): void {
  for (const row of rows) {
    const key = `${model.name}/${row.id}`;
    const recordSignal = knownRecords.get(key);
    if (recordSignal) {
      recordSignal.value = row;
    } else {
      knownRecords.set(key, signal(row));
    }
  }
}

async function fetchAll(): Promise<void> {
  const requestedIds = [...waitingIds];
  waitingIds.clear();
  for (const [model, ids] of requestedIds) {
    if (!mayRun(model, "list")) {
      continue;
    }
    const idList = [...ids];
    for (let start = 0; start < idList.length; start += MAX_IDS) {
      const filter = [{ field: "id", op: "in", value: idList.slice(start, start + MAX_IDS) }];
      const answer = await run<Row[]>(model.name, "list", { filter, limit: MAX_IDS }).catch(() => null);
      cacheRecords(model, answer?.value ?? []);
    }
  }
}

const RECENT = 5;

/** The ids of the records of a model that were last chosen or opened in this tab, newest first. */
export function recentIds(model: string): string[] {
  return JSON.parse(sessionStorage.getItem(`recent:${model}`) ?? "[]") as string[];
}

export function rememberVisit(model: string, id: string): void {
  const otherIds = recentIds(model).filter((recentId) => recentId !== id);
  sessionStorage.setItem(`recent:${model}`, JSON.stringify([id, ...otherIds].slice(0, RECENT)));
}
