// The number of records of each model, for the sidebar. Requested one after another after the page, and kept for minutes.
import { signal } from "@preact/signals";
import { send } from "../../shared/client";
import type { Envelope, Meta, Model } from "../api";
import { businessModels, mayRun } from "../models";

const KEPT_MS = 300_000;
const PAUSE_MS = 1500;

/** The counts by name of the model. A model is missing until its records are counted. */
export const recordCounts = signal<Readonly<Record<string, number>>>({});
let loadedAt_ms = 0;

/** Set a count that a list has requested. */
export function setRecordCount(model: string, count: number): void {
  if (recordCounts.peek()[model] !== count) {
    recordCounts.value = { ...recordCounts.peek(), [model]: count };
  }
}

/** Count until the returned function is called. It starts after a pause, so that the page's own requests come first. */
export function loadRecordCounts(meta: Meta): () => void {
  const controller = new AbortController();
  const count = async (model: Model) => {
    // Do not use `call`: it would report the end of the session before the person does something.
    try {
      const answer = await send("POST", `/api/${model.name}/search`, { body: { limit: 1 }, signal: controller.signal });
      setRecordCount(model.name, ((await answer.json()) as Envelope<{ total: number }>).value.total);
    } catch {
      // Without a count the sidebar shows no number.
    }
  };
  const countAll = async () => {
    loadedAt_ms = Date.now();
    for (const model of businessModels(meta).filter((businessModel) => mayRun(businessModel, "search"))) {
      if (!controller.signal.aborted) {
        await count(model);
      }
    }
  };
  const timer = Date.now() - loadedAt_ms > KEPT_MS ? setTimeout(() => void countAll(), PAUSE_MS) : 0;
  return () => (controller.abort(), clearTimeout(timer));
}
