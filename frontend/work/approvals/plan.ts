// A plan of the API, and functions for groups of plans.
import type { Risk, Row } from "../api";

export interface Difference {
  model: string;
  id: string;
  field: string;
  before: unknown;
  after: unknown;
}

export interface Plan extends Row {
  state: string;
  command: string;
  target: { model?: string; id?: string } | null;
  input: unknown;
  diff: Difference[];
  /** The effects on other records in words, such as "1 activity deleted". */
  effects: string[];
  digest: string;
  why: string | null;
  agent: string | null;
  proposed_by: { agent?: string; person?: string } | null;
  proposed_at: string;
  expires_at: string;
  needs: number;
  approvals: { name?: string; at?: string }[];
  reason: string | null;
  /** For a pending plan, "stale" if its record has changed. */
  error: string | null;
  /** Undefined if the service is an earlier version. */
  risk?: Risk;
  risk_reasons?: string[];
  reversible?: boolean;
  record_name?: string | null;
  affected?: { model: string; id: string; name: string | null; change: string }[];
}

/** The commands of a plan, one for each step. A plan that was proposed as several commands has several steps. */
export function commandsOf({ command, input }: Plan): string[] {
  const steps = (input as { steps?: { command?: unknown }[] } | null)?.steps;
  return command === "plan.propose" && Array.isArray(steps) ? steps.map((step) => String(step.command)) : [command];
}

/** The command that all steps of the plan run, or null if the steps run different commands. */
export function onlyCommand(plan: Plan): string | null {
  const [firstCommand = plan.command, ...otherCommands] = commandsOf(plan);
  return otherCommands.every((otherCommand) => otherCommand === firstCommand) ? firstCommand : null;
}

/** A key that is equal for plans that do the same to different records: same agent, command and values. */
export function similarityKey(plan: Plan): string {
  const changes = plan.diff.map(({ model, field, after }) => [model, field, after]);
  const isDeletionOnly = plan.diff.every((change) => change.after === null);
  return JSON.stringify([plan.state, isStale(plan), plan.agent, plan.command, plan.why, isDeletionOnly ? null : changes]);
}

/** Group similar plans, in the order of each group's first plan. The group that is open does not get new plans, so that
 *  no one approves a plan that was not shown. */
export function groupSimilar(plans: readonly Plan[], openPlanIds: ReadonlySet<string>): Plan[][] {
  const groups = new Map<string, Plan[]>();
  for (const plan of plans) {
    const key = `${openPlanIds.has(plan.id)} ${similarityKey(plan)}`;
    groups.set(key, [...(groups.get(key) ?? []), plan]);
  }
  return [...groups.values()];
}

const HOUR_MS = 3_600_000;

/** Filters by age: at least this old, or expiring within this time. */
export const AGE_FILTERS: Record<string, (plan: Plan, now_ms: number) => boolean> = {
  hour: (plan, now_ms) => now_ms - Date.parse(plan.proposed_at) >= HOUR_MS,
  day: (plan, now_ms) => now_ms - Date.parse(plan.proposed_at) >= 24 * HOUR_MS,
  week: (plan, now_ms) => now_ms - Date.parse(plan.proposed_at) >= 7 * 24 * HOUR_MS,
  ending: (plan, now_ms) => Date.parse(plan.expires_at) - now_ms <= 24 * HOUR_MS,
};

export function isExpired(plan: Plan, now_ms: number): boolean {
  return plan.state === "pending" && Date.parse(plan.expires_at) <= now_ms;
}

/** Whether its record has changed since it was proposed. It can then only be rejected. */
export function isStale(plan: Plan): boolean {
  return plan.state === "stale" || (plan.state === "pending" && plan.error === "stale");
}
