// The number of pending plans, shown on every page: read at each change of page, and polled while the page is visible.
import { effect } from "@preact/signals";
import { siteState } from "../../shared/components/heading";
import { send } from "../../shared/client";
import { path } from "../../shared/router";
import type { Envelope, Meta } from "../api";
import { may, modelOf } from "../models";

const EVERY_MS = 60_000;
const INBOX = "/approvals";

/** Poll the count until the returned function is called. The inbox sets a more exact count itself. */
export function pollPendingCount(meta: Meta): () => void {
  const model = modelOf(meta, "plan");
  if (!model || !may(model, "search")) {
    return () => undefined;
  }
  const ended = new AbortController();
  const count = async () => {
    if (document.visibilityState === "visible" && path.peek() !== INBOX) {
      const filter = [
        { field: "state", op: "eq", value: "pending" },
        { field: "expires_at", op: "gt", value: new Date().toISOString() },
      ];
      // Do not use `call`: it would report the end of the session before the person does something.
      const sent = { body: { filter, limit: 1 }, signal: ended.signal };
      const answer = await send("POST", "/api/plan/search", sent).catch(() => null);
      if (answer) {
        siteState.waiting.value = ((await answer.json()) as Envelope<{ total: number }>).value.total;
      }
    }
  };
  const timer = setInterval(() => void count(), EVERY_MS);
  const end = effect(() => void (path.value && queueMicrotask(count)));
  return () => (ended.abort(), clearInterval(timer), end(), (siteState.waiting.value = 0));
}
