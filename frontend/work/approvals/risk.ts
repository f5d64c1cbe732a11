// The risk of a proposal and its reasons: as the API rates it, or else by its command.
import type { Meta, Risk } from "../api";
import { fieldOf, modelOf } from "../models";
import { commandsOf, type Plan } from "./plan";

export const RISKS: readonly Risk[] = ["high", "medium", "low"];
const BULK_LIMIT = 20;

function recordCountOf(plan: Plan): number {
  return new Set(plan.diff.map((change) => `${change.model}/${change.id}`)).size;
}

export function isDeletion(plan: Plan): boolean {
  return commandsOf(plan).every((command) => command.endsWith(".delete"));
}

/** The reasons for the risk, as keys of texts. */
export function riskReasons(meta: Meta, plan: Plan): string[] {
  if (plan.risk_reasons) {
    return plan.risk_reasons;
  }
  const model = modelOf(meta, plan.command.split(".")[0] ?? "");
  return [
    ...(isDeletion(plan) ? ["deletes"] : []),
    ...(recordCountOf(plan) > BULK_LIMIT ? ["bulk"] : []),
    ...(model?.actions.some((action) => action.id === plan.command) ? ["state_change"] : []),
    ...(plan.diff.some((change) => fieldOf(modelOf(meta, change.model), change.field)?.kind === "money") ? ["money_field"] : []),
  ];
}

export function riskOf(meta: Meta, plan: Plan): Risk {
  if (plan.risk) {
    return plan.risk;
  }
  const reasons = riskReasons(meta, plan);
  return reasons.includes("deletes") || reasons.includes("bulk") ? "high" : reasons.length > 0 ? "medium" : "low";
}

/** Whether another command can undo it. */
export function isReversible(meta: Meta, plan: Plan): boolean {
  const details = modelOf(meta, plan.command.split(".")[0] ?? "")?.command_details;
  return plan.reversible ?? details?.find((detail) => detail.id === plan.command)?.reversible ?? !isDeletion(plan);
}
