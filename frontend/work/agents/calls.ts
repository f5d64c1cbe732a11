// The calls of agents. If the service does not list calls, their changes in the audit log and their proposals.
import { type Entry } from "../audit/filter";
import { type Meta, run } from "../api";
import type { Plan } from "../approvals/plan";
import { targetOf } from "../approvals/record_title";
import { canList, mayRun, modelOf } from "../models";
import type { AgentToken } from "./agent_token";
import { isReadCommand } from "./commands";

export type CallResult = "read" | "done" | "proposed" | "refused";

export interface Call {
  id: string;
  at: string;
  tool: string;
  model: string;
  record: string;
  result: CallResult;
  /** The duration in milliseconds. */
  ms: number | null;
  href: string | null;
}

const MAX_CALLS = 500;

/** Whether this person may read the audit log with its tokens. */
export function canReadAudit(meta: Meta): boolean {
  const audit = modelOf(meta, "audit_entry");
  return audit !== undefined && canList(audit) && audit.fields.some((field) => field.name === "agent_token");
}

/** Whether the service lists every call, including reads and refused calls. */
export function knowsCalls(meta: Meta): boolean {
  const model = modelOf(meta, "agent_token");
  return model !== undefined && mayRun(model, "calls");
}

interface LoggedCall {
  number: number;
  at: string;
  tool: string;
  record_id: string | null;
  result: "ok" | "proposed" | "refused";
  ms: number;
}

function ofLogged({ number, at, tool, record_id, result, ms }: LoggedCall): Call {
  const name = tool.replace("__", ".");
  const became = result === "ok" ? (isReadCommand(name) ? "read" : "done") : result;
  return { id: String(number), at, tool: name, model: name.split(".")[0] ?? "", record: record_id ?? "", result: became, ms, href: null };
}

function ofEntry(entry: Entry): Call {
  const href = `/audit/${encodeURIComponent(entry.id)}`;
  return { id: entry.id, at: entry.at, tool: entry.command ?? "–", model: entry.model ?? "", record: entry.record_id ?? "", result: "done", ms: null, href };
}

function ofPlan(plan: Plan): Call {
  const { model, id } = targetOf(plan);
  const decided = plan.state === "pending" ? "" : "&state=decided";
  const href = `/approvals?plan=${encodeURIComponent(plan.id)}${decided}`;
  return { id: plan.id, at: plan.proposed_at, tool: plan.command, model, record: id, result: "proposed", ms: null, href };
}

async function entriesOf(tokens: readonly string[], signal: AbortSignal): Promise<Entry[]> {
  const filter = [{ field: "agent_token", op: "in", value: tokens }];
  return (await run<Entry[]>("audit_entry", "list", { filter, order: [{ field: "at", dir: "desc" }], limit: MAX_CALLS }, signal)).value;
}

async function plansOf(tokens: readonly string[], signal: AbortSignal): Promise<Plan[]> {
  const filter = [{ field: "agent_token", op: "in", value: tokens }];
  return (await run<Plan[]>("plan", "list", { filter, order: [{ field: "proposed_at", dir: "desc" }], limit: MAX_CALLS }, signal)).value;
}

export interface AgentHistory {
  calls: Call[];
  plans: Plan[];
  /** The position after the calls that are loaded. */
  cursor: number;
}

const PAGE_SIZE = 100;
const MAX_SHOWN_CALLS = 1000;

/** The calls after the cursor, or the newest calls if there is no cursor yet. */
async function newCalls(token: AgentToken, history: AgentHistory | null, signal: AbortSignal) {
  const input = { id: token.id, after: history?.cursor ?? 0, limit: PAGE_SIZE };
  const { calls, cursor } = (await run<{ calls: LoggedCall[]; cursor: number }>("agent_token", "calls", input, signal)).value;
  return { calls: [...calls.map(ofLogged), ...(history?.calls ?? [])].slice(0, MAX_SHOWN_CALLS), cursor };
}

/** The calls of an agent, newest first. Only calls that are not in `history` are requested. */
export async function loadHistory(meta: Meta, token: AgentToken, history: AgentHistory | null, signal: AbortSignal): Promise<AgentHistory> {
  const plan = modelOf(meta, "plan");
  const [plans, entries, logged] = await Promise.all([
    plan && canList(plan) ? plansOf([token.id], signal) : [],
    canReadAudit(meta) && !knowsCalls(meta) ? entriesOf([token.id], signal) : [],
    knowsCalls(meta) ? newCalls(token, history, signal) : null,
  ]);
  if (logged) {
    return { ...logged, plans };
  }
  const calls = [...entries.filter((entry) => !entry.command?.startsWith("plan.")).map(ofEntry), ...plans.map(ofPlan)];
  return { calls: calls.toSorted((a, b) => b.at.localeCompare(a.at)), plans, cursor: 0 };
}

/** The last use of each token, if it is known. */
export async function loadLastUsed(meta: Meta, tokens: readonly AgentToken[], signal: AbortSignal): Promise<Map<string, string>> {
  const lastUses = new Map<string, string>();
  const note = (token: unknown, at: string) => {
    const id = String(token ?? "");
    if (id && (lastUses.get(id) ?? "") < at) {
      lastUses.set(id, at);
    }
  };
  tokens.forEach((token) => token.last_used_at && note(token.id, token.last_used_at));
  if (tokens.some((token) => token.last_used_at !== undefined) || tokens.length === 0) {
    return lastUses;
  }
  const ids = tokens.map((token) => token.id);
  const plan = modelOf(meta, "plan");
  const [entries, plans] = await Promise.all([canReadAudit(meta) ? entriesOf(ids, signal) : [], plan && canList(plan) ? plansOf(ids, signal) : []]);
  entries.forEach((entry) => note(entry.agent_token, entry.at));
  plans.forEach((plan) => note(plan["agent_token"], plan.proposed_at));
  return lastUses;
}

const DAY_MS = 86_400_000;

/** The number of calls on each of the last days, today last. */
export function callsPerDay(calls: readonly Call[], days: number, now_ms: number): { day: string; count: number }[] {
  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);
  const counts = new Map<string, number>();
  calls.forEach((call) => counts.set(call.at.slice(0, 10), (counts.get(call.at.slice(0, 10)) ?? 0) + 1));
  return Array.from({ length: days }, (_, place) => {
    const day = dayOf(now_ms - (days - 1 - place) * DAY_MS);
    return { day, count: counts.get(day) ?? 0 };
  });
}
