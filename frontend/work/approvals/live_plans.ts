// The live list of plans: one window of the browser holds the stream, and broadcasts to the others.
import { signal } from "@preact/signals";
import { Problem } from "../../shared/problem";
import { waitUntilReachable } from "../../shared/connectivity";
import { run } from "../api";
import type { Plan } from "./plan";

const MOST = 500;
const WAIT_S = 25;
const LONGEST_PAUSE_MS = 4000;
/** Above the time that the API waits, no answer is one that will not come. */
const PATIENCE_MS = (WAIT_S + 10) * 1000;
const NAME = "countersign-plans";

/** Newest first; null until they are there. */
export const plans = signal<readonly Plan[] | null>(null);
export const connectionState = signal<"opening" | "live" | "reconnecting">("opening");
export const problem = signal<Problem | null>(null);

/** Show these plans as they are now. */
export function updatePlans(changed: readonly Plan[]): void {
  const byId = new Map((plans.peek() ?? []).map((each) => [each.id, each]));
  changed.forEach((each) => byId.set(each.id, each));
  plans.value = [...byId.values()].sort((a, b) => (a.proposed_at < b.proposed_at ? 1 : -1));
}

/** Read anew what waits, all of it or one: that a record has changed is no change of the plans about it. */
export async function reloadPlans(id?: string): Promise<void> {
  const waiting = { field: "state", op: "eq", value: "pending" };
  const filter = id === undefined ? [waiting] : [waiting, { field: "id", op: "eq", value: id }];
  const found = await run<Plan[]>("plan", "list", { filter, limit: MOST }).catch(() => null);
  // What was decided while this was asked stays so.
  const isWaiting = ({ id: each }: Plan) => plans.peek()?.some((known) => known.id === each && known.state === "pending");
  updatePlans(found?.value.filter(isWaiting) ?? []);
}

/** Plans that changed, or all there are, in place of those shown; and whether the window that leads is connected. */
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

/** Follow the plans until the answered function is called. */
export function followPlans(): () => void {
  const ended = new AbortController();
  const channel = new BroadcastChannel(NAME);
  channel.onmessage = (event: MessageEvent<PlanUpdate>) => {
    connectionState.value = event.data.state;
    show(event.data);
  };
  const lead = () => watch(channel, ended.signal);
  if ("locks" in navigator) {
    // Who has the lock waits at the API; when that window closes, the next one has it.
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

/** All of them, once: what is pending, and what was decided last. Of what comes the window that leads tells. */
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
  // From 0 on all there are come at once; the API goes back to it when what one may see has changed.
  let isAnew = true;
  // After a break the first answer comes at once: it says that the connection is back.
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
