// How many records each model has, for the sidebar: read one after the other once the page is there, and kept for minutes.
import { signal } from "@preact/signals";
import { send } from "../../shared/client";
import type { Envelope, Meta, Model } from "../api";
import { businessModels, may } from "../models";

const KEPT_MS = 300_000;
const PAUSE_MS = 1500;

/** By name of the model; without those that are not known yet. */
export const recordCounts = signal<Readonly<Record<string, number>>>({});
let loadedAt_ms = 0;

/** What a list has counted anyway. */
export function setRecordCount(model: string, count: number): void {
  if (recordCounts.peek()[model] !== count) {
    recordCounts.value = { ...recordCounts.peek(), [model]: count };
  }
}

/** Count until the answered function is called. Pages come first: it begins when they have asked for what they show. */
export function loadRecordCounts(meta: Meta): () => void {
  const ended = new AbortController();
  const count = async (model: Model) => {
    // Not by `call`: that the session has ended is said when the person does something.
    try {
      const answer = await send("POST", `/api/${model.name}/search`, { body: { limit: 1 }, signal: ended.signal });
      setRecordCount(model.name, ((await answer.json()) as Envelope<{ total: number }>).value.total);
    } catch {
      // The sidebar then shows no number.
    }
  };
  const all = async () => {
    loadedAt_ms = Date.now();
    for (const model of businessModels(meta).filter((each) => may(each, "search"))) {
      if (!ended.signal.aborted) {
        await count(model);
      }
    }
  };
  const timer = Date.now() - loadedAt_ms > KEPT_MS ? setTimeout(() => void all(), PAUSE_MS) : 0;
  return () => (ended.abort(), clearTimeout(timer));
}
