// The live list of plans. One window of the browser, the leader, polls the API and broadcasts to the others.
import { signal } from "@preact/signals";
import { Problem } from "../../shared/problem";
import { waitUntilReachable } from "../../shared/connectivity";
import { run } from "../api";
import type { Plan } from "./plan";

const MAX_PLANS = 500;
const WAIT_S = 25;
const MAX_PAUSE_MS = 4000;
/** The timeout of a poll, longer than the API waits. */
const TIMEOUT_MS = (WAIT_S + 10) * 1000;
const CHANNEL_NAME = "countersign-plans";

/** Newest first; null until they are loaded. */
export const plans = signal<readonly Plan[] | null>(null);
export const connectionState = signal<"opening" | "live" | "reconnecting">("opening");
export const problem = signal<Problem | null>(null);

/** Replace these plans in the list. */
export function updatePlans(changedPlans: readonly Plan[]): void {
  const byId = new Map((plans.peek() ?? []).map((plan) => [plan.id, plan]));
  changedPlans.forEach((changedPlan) => byId.set(changedPlan.id, changedPlan));
  plans.value = [...byId.values()].sort((a, b) => (a.proposed_at < b.proposed_at ? 1 : -1));
}

/** Reload all pending plans, or one: the stream does not report that a record of a plan has changed. */
export async function reloadPlans(id?: string): Promise<void> {
  const pendingCondition = { field: "state", op: "eq", value: "pending" };
  const filter = id === undefined ? [pendingCondition] : [pendingCondition, { field: "id", op: "eq", value: id }];
  const response = await run<Plan[]>("plan", "list", { filter, limit: MAX_PLANS }).catch(() => null);
  // Keep the decisions made while this request was under way.
  const isStillPending = ({ id: planId }: Plan) => plans.peek()?.some((listedPlan) => listedPlan.id === planId && listedPlan.state === "pending");
  updatePlans(response?.value.filter(isStillPending) ?? []);
}

/** A broadcast of the leader: changed plans, or all plans, and whether the leader is connected. */
interface PlanUpdate {
  plans: Plan[];
  isAll: boolean;
  state: "live" | "reconnecting";
}

interface WatchResult {
  plans: Plan[];
  cursor: number;
}

function applyUpdate(update: PlanUpdate): void {
  if (update.isAll) {
    plans.value = [];
  }
  updatePlans(update.plans);
}

/** Follow the plans until the returned function is called. */
export function followPlans(): () => void {
  const controller = new AbortController();
  const channel = new BroadcastChannel(CHANNEL_NAME);
  channel.onmessage = (event: MessageEvent<PlanUpdate>) => {
    connectionState.value = event.data.state;
    applyUpdate(event.data);
  };
  const pollAndBroadcast = () => poll(channel, controller.signal);
  if ("locks" in navigator) {
    // The window with the lock is the leader. When it closes, the next window gets the lock.
    const leadOrStandBy = (lock: Lock | null) => (lock ? pollAndBroadcast() : void standBy(pollAndBroadcast, controller.signal));
    navigator.locks.request(CHANNEL_NAME, { ifAvailable: true }, leadOrStandBy).catch(() => undefined);
  } else {
    void pollAndBroadcast();
  }
  return () => {
    controller.abort();
    channel.close();
  };
}

async function standBy(pollAndBroadcast: () => Promise<void>, signal: AbortSignal): Promise<void> {
  void load(signal).catch(() => undefined);
  connectionState.value = "live";
  await navigator.locks.request(CHANNEL_NAME, { signal }, pollAndBroadcast).catch(() => undefined);
}

/** Load the pending and the last decided plans once. The leader broadcasts later changes. */
async function load(signal: AbortSignal): Promise<void> {
  try {
    const order = [{ field: "proposed_at", dir: "desc" }];
    const response = await run<Plan[]>("plan", "list", { order, limit: MAX_PLANS }, signal);
    problem.value = null;
    updatePlans(response.value);
  } catch (error) {
    if (!signal.aborted) {
      problem.value = Problem.from(error);
    }
    throw error;
  }
}

async function poll(channel: BroadcastChannel, signal: AbortSignal): Promise<void> {
  let sinceNumber = 0;
  let pause_ms = 500;
  // The cursor 0 returns all plans. The API resets the cursor to 0 when the person's permissions have changed.
  let readsAll = true;
  // After an interruption the first answer does not wait, so that it shows that the connection is back.
  let isReconnect = false;
  while (!signal.aborted) {
    try {
      const input: object = { since: sinceNumber, wait_s: readsAll || isReconnect ? 0 : WAIT_S };
      const pollSignal = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const { value }: { value: WatchResult } = await run<WatchResult>("plan", "watch", input, pollSignal);
      const wasLive = connectionState.peek() === "live";
      isReconnect = false;
      connectionState.value = "live";
      problem.value = null;
      pause_ms = 500;
      if (readsAll || !wasLive || value.plans.length) {
        const update: PlanUpdate = { plans: value.plans, isAll: readsAll, state: "live" };
        applyUpdate(update);
        channel.postMessage(update);
      }
      readsAll = value.cursor === 0 && sinceNumber !== 0;
      sinceNumber = value.cursor;
    } catch (error) {
      if (!signal.aborted) {
        connectionState.value = "reconnecting";
        isReconnect = true;
        channel.postMessage({ plans: [], isAll: false, state: "reconnecting" } satisfies PlanUpdate);
        if (plans.peek() === null) {
          problem.value = Problem.from(error);
        }
        await waitUntilReachable(signal);
        await new Promise((resolve) => setTimeout(resolve, pause_ms));
        pause_ms = Math.min(pause_ms * 2, MAX_PAUSE_MS);
      }
    }
  }
}
