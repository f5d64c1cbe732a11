// Plans as they come and change: one window of the browser waits at the API, and tells the others.
import { signal } from "@preact/signals";
import { Problem } from "../../shared/problem";
import { run } from "../api";
import type { Plan } from "./plan";

const MOST = 500;
const WAIT_S = 25;
const LONGEST_PAUSE_MS = 15_000;
const NAME = "countersign-plans";

/** Newest first; null until they are there. */
export const plans = signal<readonly Plan[] | null>(null);
export const state = signal<"opening" | "live" | "reconnecting">("opening");
export const problem = signal<Problem | null>(null);

/** Show these plans as they are now. */
export function put(changed: readonly Plan[]): void {
  const byId = new Map((plans.peek() ?? []).map((each) => [each.id, each]));
  changed.forEach((each) => byId.set(each.id, each));
  plans.value = [...byId.values()].sort((a, b) => (a.proposed_at < b.proposed_at ? 1 : -1));
}

interface News {
  plans: Plan[];
}

/** Follow the plans until the answered function is called. */
export function follow(): () => void {
  const ended = new AbortController();
  const channel = new BroadcastChannel(NAME);
  channel.onmessage = (event: MessageEvent<News>) => {
    state.value = "live";
    put(event.data.plans);
  };
  void load(ended.signal).catch(() => undefined);
  const lead = () => watch(channel, ended.signal);
  if ("locks" in navigator) {
    // Who has the lock waits at the API; when that window closes, the next one has it.
    navigator.locks.request(NAME, { signal: ended.signal }, lead).catch(() => undefined);
    if (state.peek() === "opening") {
      state.value = "live";
    }
  } else {
    void lead();
  }
  return () => {
    ended.abort();
    channel.close();
  };
}

/** All of them anew: what is pending, and what was decided last. */
async function load(signal: AbortSignal): Promise<void> {
  try {
    const order = [{ field: "proposed_at", dir: "desc" }];
    const found = await run<Plan[]>("plan", "list", { order, limit: MOST }, signal);
    problem.value = null;
    plans.value = found.value;
  } catch (error) {
    if (!signal.aborted) {
      problem.value = error instanceof Problem ? error : Problem.offline();
    }
    throw error;
  }
}

async function watch(channel: BroadcastChannel, signal: AbortSignal): Promise<void> {
  let since = Date.now() * 1000;
  let pause_ms = 500;
  let isFirst = true;
  while (!signal.aborted) {
    try {
      const { value } = await run<News & { cursor: number }>("plan", "watch", { since, wait_s: isFirst ? 0 : WAIT_S }, signal);
      since = value.cursor;
      state.value = "live";
      pause_ms = 500;
      if (value.plans.length) {
        put(value.plans);
        channel.postMessage({ plans: value.plans } satisfies News);
      } else {
        // Now and then all of them: what ended by its time alone, or was written while the last answer left.
        await load(signal);
      }
      isFirst = false;
    } catch {
      if (!signal.aborted) {
        state.value = "reconnecting";
        await new Promise((done) => setTimeout(done, pause_ms));
        pause_ms = Math.min(pause_ms * 2, LONGEST_PAUSE_MS);
      }
    }
  }
}
