// The records that were opened last, in this browser: ids alone, by person.
import { effect, signal } from "@preact/signals";
import { path } from "../../shared/router";

export interface Visit {
  model: string;
  id: string;
}

const MOST = 6;
const RECORD = /^\/models\/([^/]+)\/records\/([^/]+)$/;

export const recentVisits = signal<readonly Visit[]>([]);

/** Note which records this person opens, until the answered function is called. */
export function watchVisits(person: string): () => void {
  const key = `countersign-recent:${person}`;
  recentVisits.value = JSON.parse(localStorage.getItem(key) ?? "[]") as Visit[];
  return effect(() => {
    const [, model, id] = RECORD.exec(path.value) ?? [];
    if (model && id) {
      const visit = { model, id: decodeURIComponent(id) };
      const rest = recentVisits.peek().filter((each) => each.model !== model || each.id !== visit.id);
      recentVisits.value = [visit, ...rest].slice(0, MOST);
      localStorage.setItem(key, JSON.stringify(recentVisits.peek()));
    }
  });
}
