// The records that each person opened last in this browser. Only ids are stored.
import { effect, signal } from "@preact/signals";
import { path } from "../../shared/router";

export interface Visit {
  model: string;
  id: string;
}

const MAX_VISITS = 6;
const RECORD = /^\/models\/([^/]+)\/records\/([^/]+)$/;

export const recentVisits = signal<readonly Visit[]>([]);

/** Record which records this person opens, until the returned function is called. */
export function watchVisits(person: string): () => void {
  const key = `countersign-recent:${person}`;
  recentVisits.value = JSON.parse(localStorage.getItem(key) ?? "[]") as Visit[];
  return effect(() => {
    const [, model, id] = RECORD.exec(path.value) ?? [];
    if (model && id) {
      const visit = { model, id: decodeURIComponent(id) };
      const otherVisits = recentVisits.peek().filter((recentVisit) => recentVisit.model !== model || recentVisit.id !== visit.id);
      recentVisits.value = [visit, ...otherVisits].slice(0, MAX_VISITS);
      localStorage.setItem(key, JSON.stringify(recentVisits.peek()));
    }
  });
}
