// What agents did: their calls as far as the service says them, else their changes in the audit log and their proposals.
import { type Entry } from "../audit/filter";
import { type Meta, type Row, run } from "../api";
import type { Plan } from "../approvals/plan";
import { targetOf } from "../approvals/record_title";
import { canList, may, modelOf } from "../models";
import type { AgentToken } from "./agent_token";

export type CallResult = "read" | "done" | "proposed" | "refused";

export interface Call {
  id: string;
  at: string;
  tool: string;
  model: string;
  record: string;
  result: CallResult;
  /** How long it took. */
  ms: number | null;
  /** What stands in place of the record: how many rows, or why it was refused. */
  note: string | null;
  href: string | null;
}

const MOST = 500;

/** Whether this person reads the audit log, with the tokens in it. */
export function canReadAudit(meta: Meta): boolean {
  const audit = modelOf(meta, "audit_entry");
  return audit !== undefined && canList(audit) && audit.fields.some((each) => each.name === "agent_token");
}

/** Whether the service says each call, reads and refusals too. */
export function knowsCalls(meta: Meta): boolean {
  const model = modelOf(meta, "agent_token");
  return model !== undefined && may(model, "calls");
}

interface LoggedCall extends Row {
  at: string;
  tool: string;
  model?: string | null;
  record?: string | null;
  record_id?: string | null;
  result: string;
  ms?: number | null;
  rows?: number | null;
}

function ofLogged(call: LoggedCall): Call {
  const result = (["read", "done", "proposed", "refused"] as const).find((each) => each === call.result) ?? "refused";
  const record = call.record_id ?? call.record ?? "";
  const model = call.model ?? call.tool.split(/\.|__/)[0] ?? "";
  const note = typeof call.rows === "number" ? String(call.rows) : null;
  return { id: call.id, at: call.at, tool: call.tool.replace("__", "."), model, record, result, ms: call.ms ?? null, note, href: null };
}

function ofEntry(entry: Entry): Call {
  const href = `/audit/${encodeURIComponent(entry.id)}`;
  return { id: entry.id, at: entry.at, tool: entry.command ?? "–", model: entry.model ?? "", record: entry.record_id ?? "", result: "done", ms: null, note: null, href };
}

function ofPlan(plan: Plan): Call {
  const { model, id } = targetOf(plan);
  const decided = plan.state === "pending" ? "" : "&state=decided";
  const href = `/approvals?plan=${encodeURIComponent(plan.id)}${decided}`;
  return { id: plan.id, at: plan.proposed_at, tool: plan.command, model, record: id, result: "proposed", ms: null, note: null, href };
}

async function entriesOf(tokens: readonly string[], signal: AbortSignal): Promise<Entry[]> {
  const filter = [{ field: "agent_token", op: "in", value: tokens }];
  return (await run<Entry[]>("audit_entry", "list", { filter, order: [{ field: "at", dir: "desc" }], limit: MOST }, signal)).value;
}

async function plansOf(tokens: readonly string[], signal: AbortSignal): Promise<Plan[]> {
  const filter = [{ field: "agent_token", op: "in", value: tokens }];
  return (await run<Plan[]>("plan", "list", { filter, order: [{ field: "proposed_at", dir: "desc" }], limit: MOST }, signal)).value;
}

export interface AgentHistory {
  calls: Call[];
  plans: Plan[];
}

/** The calls of an agent, newest first. */
export async function loadHistory(meta: Meta, token: AgentToken, signal: AbortSignal): Promise<AgentHistory> {
  const plan = modelOf(meta, "plan");
  const [plans, entries, logged] = await Promise.all([
    plan && canList(plan) ? plansOf([token.id], signal) : [],
    canReadAudit(meta) && !knowsCalls(meta) ? entriesOf([token.id], signal) : [],
    knowsCalls(meta) ? run<LoggedCall[]>("agent_token", "calls", { id: token.id }, signal).then((found) => found.value) : null,
  ]);
  const calls = logged?.map(ofLogged) ?? [...entries.filter((each) => !each.command?.startsWith("plan.")).map(ofEntry), ...plans.map(ofPlan)];
  return { calls: calls.toSorted((a, b) => b.at.localeCompare(a.at)), plans };
}

/** When each token was last used, as far as it is known. */
export async function loadLastUsed(meta: Meta, tokens: readonly AgentToken[], signal: AbortSignal): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const note = (token: unknown, at: string) => {
    const id = String(token ?? "");
    if (id && (found.get(id) ?? "") < at) {
      found.set(id, at);
    }
  };
  tokens.forEach((each) => each.last_used_at && note(each.id, each.last_used_at));
  if (tokens.some((each) => each.last_used_at !== undefined) || tokens.length === 0) {
    return found;
  }
  const ids = tokens.map((each) => each.id);
  const plan = modelOf(meta, "plan");
  const [entries, plans] = await Promise.all([canReadAudit(meta) ? entriesOf(ids, signal) : [], plan && canList(plan) ? plansOf(ids, signal) : []]);
  entries.forEach((each) => note(each.agent_token, each.at));
  plans.forEach((each) => note(each["agent_token"], each.proposed_at));
  return found;
}

const DAY_MS = 86_400_000;

/** How many calls there were on each of the last days, today's as the last. */
export function callsPerDay(calls: readonly Call[], days: number, now_ms: number): { day: string; count: number }[] {
  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);
  const counts = new Map<string, number>();
  calls.forEach((each) => counts.set(each.at.slice(0, 10), (counts.get(each.at.slice(0, 10)) ?? 0) + 1));
  return Array.from({ length: days }, (_, place) => {
    const day = dayOf(now_ms - (days - 1 - place) * DAY_MS);
    return { day, count: counts.get(day) ?? 0 };
  });
}
