// A plan as the API tells it, and what is said about several of them.
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
  /** What else happens to other records, in words: "1 activity deleted". */
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
  /** Of a waiting one "stale": what it is about has changed. */
  error: string | null;
  /** What an earlier version of the service does not answer. */
  risk?: Risk;
  risk_reasons?: string[];
  reversible?: boolean;
  record_name?: string | null;
  affected?: { model: string; id: string; name: string | null; change: string }[];
}

/** The commands of a plan, one for each step: of one that an agent proposed as several, those in it. */
export function commandsOf({ command, input }: Plan): string[] {
  const steps = (input as { steps?: { command?: unknown }[] } | null)?.steps;
  return command === "plan.propose" && Array.isArray(steps) ? steps.map((each) => String(each.command)) : [command];
}

/** The command that a plan runs, however often; null where it runs several. */
export function onlyCommand(plan: Plan): string | null {
  const [first = plan.command, ...others] = commandsOf(plan);
  return others.every((each) => each === first) ? first : null;
}

/** Plans that would do the same to different records: same agent, same command, same values. */
export function similarityKey(plan: Plan): string {
  const done = plan.diff.map(({ model, field, after }) => [model, field, after]);
  const isRemoval = plan.diff.every((each) => each.after === null);
  return JSON.stringify([plan.state, isStale(plan), plan.agent, plan.command, plan.why, isRemoval ? null : done]);
}

/** In their order, with those that are alike behind the first of them. What is looked at stays as it is: who came
 *  later is no part of it, so that nothing is signed that was not shown. */
export function groupSimilar(plans: readonly Plan[], looked: ReadonlySet<string>): Plan[][] {
  const groups = new Map<string, Plan[]>();
  for (const plan of plans) {
    const key = `${looked.has(plan.id)} ${similarityKey(plan)}`;
    groups.set(key, [...(groups.get(key) ?? []), plan]);
  }
  return [...groups.values()];
}

const HOUR_MS = 3_600_000;

/** The ages a proposal may be filtered by: at least so old, or to expire within so much. */
export const AGE_FILTERS: Record<string, (plan: Plan, now_ms: number) => boolean> = {
  hour: (plan, now_ms) => now_ms - Date.parse(plan.proposed_at) >= HOUR_MS,
  day: (plan, now_ms) => now_ms - Date.parse(plan.proposed_at) >= 24 * HOUR_MS,
  week: (plan, now_ms) => now_ms - Date.parse(plan.proposed_at) >= 7 * 24 * HOUR_MS,
  ending: (plan, now_ms) => Date.parse(plan.expires_at) - now_ms <= 24 * HOUR_MS,
};

export function isExpired(plan: Plan, now_ms: number): boolean {
  return plan.state === "pending" && Date.parse(plan.expires_at) <= now_ms;
}

/** Whether what it is about has changed since: it can be rejected, and nothing else. */
export function isStale(plan: Plan): boolean {
  return plan.state === "stale" || (plan.state === "pending" && plan.error === "stale");
}
