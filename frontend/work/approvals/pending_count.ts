// Counts the pending plans for the badge on every page: after each change of page, and every minute.
import { effect } from "@preact/signals";
import { siteState } from "../../shared/components/heading";
import { send } from "../../shared/client";
import { path } from "../../shared/router";
import type { Envelope, Meta } from "../api";
import { mayRun, modelOf } from "../models";

const INTERVAL_MS = 60_000;
const INBOX_PATH = "/approvals";

/** Poll the count until the returned function is called. The inbox page sets the count itself and is left out. */
export function pollPendingCount(meta: Meta): () => void {
  const model = modelOf(meta, "plan");
  if (!model || !mayRun(model, "search")) {
    return () => undefined;
  }
  const controller = new AbortController();
  const count = async () => {
    if (document.visibilityState === "visible" && path.peek() !== INBOX_PATH) {
      const filter = [
        { field: "state", op: "eq", value: "pending" },
        { field: "expires_at", op: "gt", value: new Date().toISOString() },
      ];
      // Do not use `call`: it would report the end of the session before the person does something.
      const options = { body: { filter, limit: 1 }, signal: controller.signal };
      const response = await send("POST", "/api/plan/search", options).catch(() => null);
      if (response) {
        siteState.waiting.value = ((await response.json()) as Envelope<{ total: number }>).value.total;
      }
    }
  };
  const timer = setInterval(() => void count(), INTERVAL_MS);
  const disposeEffect = effect(() => void (path.value && queueMicrotask(count)));
  return () => (controller.abort(), clearInterval(timer), disposeEffect(), (siteState.waiting.value = 0));
}
