// The live list of plans. One window of the browser, the leader, polls the API and broadcasts to the others.
import { signal } from "@preact/signals";
import { Problem } from "../../shared/problem";
import { waitUntilReachable } from "../../shared/connectivity";
import { run } from "../api";
import type { Plan } from "./plan";

const MOST = 500;
const WAIT_S = 25;
const LONGEST_PAUSE_MS = 4000;
/** The timeout of a poll, longer than the API waits. */
const PATIENCE_MS = (WAIT_S + 10) * 1000;
const NAME = "countersign-plans";

/** Newest first; null until they are loaded. */
export const plans = signal<readonly Plan[] | null>(null);
export const connectionState = signal<"opening" | "live" | "reconnecting">("opening");
export const problem = signal<Problem | null>(null);

/** Replace these plans in the list. */
export function updatePlans(changed: readonly Plan[]): void {
  const byId = new Map((plans.peek() ?? []).map((each) => [each.id, each]));
  changed.forEach((each) => byId.set(each.id, each));
  plans.value = [...byId.values()].sort((a, b) => (a.proposed_at < b.proposed_at ? 1 : -1));
}

/** Reload all pending plans, or one: the stream does not report that a record of a plan has changed. */
export async function reloadPlans(id?: string): Promise<void> {
  const waiting = { field: "state", op: "eq", value: "pending" };
  const filter = id === undefined ? [waiting] : [waiting, { field: "id", op: "eq", value: id }];
  const found = await run<Plan[]>("plan", "list", { filter, limit: MOST }).catch(() => null);
  // Keep the decisions made while this request was under way.
  const isWaiting = ({ id: each }: Plan) => plans.peek()?.some((known) => known.id === each && known.state === "pending");
  updatePlans(found?.value.filter(isWaiting) ?? []);
}

/** A broadcast of the leader: changed plans, or all plans, and whether the leader is connected. */
interface PlanUpdate {
  plans: Plan[];
  isAll: boolean;
  state: "live" | "reconnecting";
}

interface Watched {
  plans: Plan[];
  cursor: number;
}

function show(news: PlanUpdate): void {
  if (news.isAll) {
    plans.value = [];
  }
  updatePlans(news.plans);
}

/** Follow the plans until the returned function is called. */
export function followPlans(): () => void {
  const ended = new AbortController();
  const channel = new BroadcastChannel(NAME);
  channel.onmessage = (event: MessageEvent<PlanUpdate>) => {
    connectionState.value = event.data.state;
    show(event.data);
  };
  const lead = () => watch(channel, ended.signal);
  if ("locks" in navigator) {
    // The window with the lock is the leader. When it closes, the next window gets the lock.
    const stand = (lock: Lock | null) => (lock ? lead() : void standBy(lead, ended.signal));
    navigator.locks.request(NAME, { ifAvailable: true }, stand).catch(() => undefined);
  } else {
    void lead();
  }
  return () => {
    ended.abort();
    channel.close();
  };
}

async function standBy(lead: () => Promise<void>, signal: AbortSignal): Promise<void> {
  void load(signal).catch(() => undefined);
  connectionState.value = "live";
  await navigator.locks.request(NAME, { signal }, lead).catch(() => undefined);
}

/** Load the pending and the last decided plans once. The leader broadcasts later changes. */
async function load(signal: AbortSignal): Promise<void> {
  try {
    const order = [{ field: "proposed_at", dir: "desc" }];
    const found = await run<Plan[]>("plan", "list", { order, limit: MOST }, signal);
    problem.value = null;
    updatePlans(found.value);
  } catch (error) {
    if (!signal.aborted) {
      problem.value = Problem.from(error);
    }
    throw error;
  }
}

async function watch(channel: BroadcastChannel, signal: AbortSignal): Promise<void> {
  let since = 0;
  let pause_ms = 500;
  // The cursor 0 returns all plans. The API resets the cursor to 0 when the person's permissions have changed.
  let isAnew = true;
  // After an interruption the first answer does not wait, so that it shows that the connection is back.
  let isBack = false;
  while (!signal.aborted) {
    try {
      const asked: object = { since, wait_s: isAnew || isBack ? 0 : WAIT_S };
      const patience = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
      const { value }: { value: Watched } = await run<Watched>("plan", "watch", asked, patience);
      const wasLive = connectionState.peek() === "live";
      isBack = false;
      connectionState.value = "live";
      problem.value = null;
      pause_ms = 500;
      if (isAnew || !wasLive || value.plans.length) {
        const news: PlanUpdate = { plans: value.plans, isAll: isAnew, state: "live" };
        show(news);
        channel.postMessage(news);
      }
      isAnew = value.cursor === 0 && since !== 0;
      since = value.cursor;
    } catch (error) {
      if (!signal.aborted) {
        connectionState.value = "reconnecting";
        isBack = true;
        channel.postMessage({ plans: [], isAll: false, state: "reconnecting" } satisfies PlanUpdate);
        if (plans.peek() === null) {
          problem.value = Problem.from(error);
        }
        await waitUntilReachable(signal);
        await new Promise((done) => setTimeout(done, pause_ms));
        pause_ms = Math.min(pause_ms * 2, LONGEST_PAUSE_MS);
      }
    }
  }
}
