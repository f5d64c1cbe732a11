// The number of records of each view, for the tabs of a list. Requested one after another after the page, and kept for minutes.
import { signal } from "@preact/signals";
import { send } from "../../shared/client";
import type { Envelope, Model } from "../api";
import { mayRun } from "../models";
import { recordCounts } from "../shell/record_counts";
import type { View } from "./saved_views";

const KEPT_MS = 300_000;
const PAUSE_MS = 1500;
/** Above this number of records, counts would slow down the service for people who work in the list. */
const MAX_COUNTED_RECORDS = 100_000;

/** The counts by model and query of the view. A view is missing until its records are counted. */
export const viewCounts = signal<Readonly<Record<string, number>>>({});
const loadedAt_ms = new Map<string, number>();

export function countKey(model: Model, view: View): string {
  return `${model.name}?${new URLSearchParams(view.search).get("filter") ?? ""}`;
}

/** Count until the returned function is called. It starts after a pause, so that the list's own requests come first. */
export function loadViewCounts(model: Model, views: readonly View[]): () => void {
  const controller = new AbortController();
  const countAll = async () => {
    if ((recordCounts.peek()[model.name] ?? 0) > MAX_COUNTED_RECORDS) {
      return;
    }
    const countByView: Record<string, number> = {};
    for (const view of views.filter((view) => Date.now() - (loadedAt_ms.get(countKey(model, view)) ?? 0) > KEPT_MS)) {
      const key = countKey(model, view);
      countByView[key] ??= await count(model, view, controller.signal);
      loadedAt_ms.set(key, Date.now());
    }
    // Show all counts at once, so that the tabs move only once.
    viewCounts.value = { ...viewCounts.peek(), ...countByView };
  };
  // Without a count a tab shows no number.
  const timer = mayRun(model, "search") ? setTimeout(() => void countAll().catch(() => undefined), PAUSE_MS) : 0;
  return () => (controller.abort(), clearTimeout(timer));
}

async function count(model: Model, view: View, signal: AbortSignal): Promise<number> {
  const filter: unknown = JSON.parse(new URLSearchParams(view.search).get("filter") ?? "[]");
  // Do not use `call`: it would report the end of the session before the person does something.
  const answer = await send("POST", `/api/${model.name}/search`, { body: { filter, limit: 1 }, signal });
  return ((await answer.json()) as Envelope<{ total: number }>).value.total;
}
