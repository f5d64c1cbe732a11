// Approves plans, each with the digest of what was shown, or rejects them with a reason.
import { showToast } from "../../shared/toast";
import { number, plural, translator } from "../../shared/i18n";
import { Problem } from "../../shared/problem";
import { call, run } from "../api";
import { updatePlans, reloadPlans } from "./live_plans";
import type { Plan } from "./plan";

const t = translator("approvals");

type SuccessText = (reloaded: readonly Plan[]) => string;

/** Decide on several plans and report their states as the API returns them. Return whether all were decided. */
async function decideAll(plans: readonly Plan[], decide: (plan: Plan) => Promise<void>, successText: SuccessText): Promise<boolean> {
  const problems: Problem[] = [];
  const reloaded: Plan[] = [];
  for (const plan of plans) {
    try {
      await decide(plan);
    } catch (error) {
      problems.push(Problem.from(error));
    }
    const response = await run<Plan>("plan", "get", { id: plan.id }).catch(() => null);
    if (response) {
      updatePlans([response.value]);
      reloaded.push(response.value);
    }
  }
  await reloadPlans();
  const failure = reloaded.some((plan) => plan.state === "stale") ? t("stale") : (problems[0]?.message ?? "");
  const isOne = plans.length === 1;
  const n = number(plans.length - problems.length);
  showToast(problems.length ? (isOne ? failure : t("undecided", { n, failed: number(problems.length), why: failure })) : successText(reloaded));
  return problems.length === 0;
}

export async function approve(plans: readonly Plan[]): Promise<boolean> {
  return decideAll(
    plans,
    async (plan) => {
      await call("POST", `/api/approve/${encodeURIComponent(plan.id)}`, { body: { digest: plan.digest } });
    },
    (reloaded) => {
      const missing = Math.max(0, ...reloaded.map((plan) => plan.needs - plan.approvals.length));
      const isExecuted = reloaded.length > 0 && reloaded.every((plan) => plan.state === "executed");
      return isExecuted ? t("approved") : plural(missing, t("counted.one"), t("counted"));
    },
  );
}

export async function reject(plans: readonly Plan[], reason: string): Promise<boolean> {
  return decideAll(
    plans,
    async (plan) => {
      await run("plan", "reject", { id: plan.id, reason });
    },
    () => t("rejected"),
  );
}
