// Approves plans, each with the digest of what was shown, or rejects them with a reason.
import { showToast } from "../../shared/toast";
import { number, plural, translator } from "../../shared/i18n";
import { Problem } from "../../shared/problem";
import { call, run } from "../api";
import { updatePlans, reloadPlans } from "./live_plans";
import type { Plan } from "./plan";

const t = translator("approvals");

type Done = (after: readonly Plan[]) => string;

/** Decide on several plans and report their states as the API returns them. Return whether all were decided. */
async function decideAll(several: readonly Plan[], decide: (plan: Plan) => Promise<void>, done: Done): Promise<boolean> {
  const failed: Problem[] = [];
  const after: Plan[] = [];
  for (const plan of several) {
    try {
      await decide(plan);
    } catch (error) {
      failed.push(Problem.from(error));
    }
    const now = await run<Plan>("plan", "get", { id: plan.id }).catch(() => null);
    if (now) {
      updatePlans([now.value]);
      after.push(now.value);
    }
  }
  await reloadPlans();
  const why = after.some((plan) => plan.state === "stale") ? t("stale") : (failed[0]?.message ?? "");
  const isOne = several.length === 1;
  const n = number(several.length - failed.length);
  showToast(failed.length ? (isOne ? why : t("undecided", { n, failed: number(failed.length), why })) : done(after));
  return failed.length === 0;
}

export async function approve(several: readonly Plan[]): Promise<boolean> {
  return decideAll(
    several,
    async (plan) => {
      await call("POST", `/api/approve/${encodeURIComponent(plan.id)}`, { body: { digest: plan.digest } });
    },
    (after) => {
      const missing = Math.max(0, ...after.map((plan) => plan.needs - plan.approvals.length));
      const isDone = after.length > 0 && after.every((plan) => plan.state === "executed");
      return isDone ? t("approved") : plural(missing, t("counted.one"), t("counted"));
    },
  );
}

export async function reject(several: readonly Plan[], reason: string): Promise<boolean> {
  return decideAll(
    several,
    async (plan) => {
      await run("plan", "reject", { id: plan.id, reason });
    },
    () => t("rejected"),
  );
}
