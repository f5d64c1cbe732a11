// Decisions about plans: each is approved with the digest of what was shown, or rejected with a reason.
import { tell } from "../../shared/components/toast";
import { number } from "../../shared/words";
import { Problem } from "../../shared/problem";
import { call, run } from "../api";
import { put } from "./live";
import type { Plan } from "./plan";
import { say } from "./say";

/** Whether all of them were decided. */
async function each(several: readonly Plan[], decide: (plan: Plan) => Promise<void>, done: string): Promise<boolean> {
  const failed: Problem[] = [];
  let isStale = false;
  for (const plan of several) {
    try {
      await decide(plan);
    } catch (error) {
      failed.push(error instanceof Problem ? error : Problem.offline());
    }
    const now = await run<Plan>("plan", "get", { id: plan.id }).catch(() => null);
    if (now) {
      put([now.value]);
      isStale ||= now.value.state === "stale";
    }
  }
  const why = isStale ? say("stale") : (failed[0]?.message ?? "");
  const isOne = several.length === 1;
  const n = number(several.length - failed.length);
  tell(failed.length ? (isOne ? why : say("undecided", { n, failed: number(failed.length), why })) : done);
  return failed.length === 0;
}

export async function approve(several: readonly Plan[]): Promise<boolean> {
  const isLast = several.every((plan) => plan.approvals.length + 1 >= plan.needs);
  return each(
    several,
    async (plan) => {
      await call("POST", `/api/approve/${encodeURIComponent(plan.id)}`, { body: { digest: plan.digest } });
    },
    say(isLast ? "approved" : "counted"),
  );
}

export async function reject(several: readonly Plan[], reason: string): Promise<boolean> {
  return each(
    several,
    async (plan) => {
      await run("plan", "reject", { id: plan.id, reason });
    },
    say("rejected"),
  );
}
