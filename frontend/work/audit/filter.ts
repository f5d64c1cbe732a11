// The filter of the audit log, kept in the address; each parameter becomes a condition of the API.
import { query } from "../../shared/router";
import type { Model, Row } from "../api";
import { fieldOf } from "../models";
import { type Condition, operators } from "../values/operators";

export interface Entry extends Row {
  at: string;
  command?: string;
  user_id?: string;
  agent_token?: string | null;
  agent?: string | null;
  model?: string;
  record_id?: string | null;
  plan_id?: string | null;
  request_id?: string;
  fields?: string | null;
  changes?: Record<string, [unknown, unknown]> | null;
  lane?: number;
  number?: number;
}

type Op = Condition["op"];

/** Maps each parameter of the address to its field, its operator, and the conversion of the typed text. */
const FILTERS: Record<string, readonly [field: string, op: Op, value?: (text: string) => string | null]> = {
  command: ["command", "eq"],
  agent: ["agent", "eq"],
  user: ["user_id", "eq"],
  model: ["model", "eq"],
  record: ["record_id", "eq"],
  plan: ["plan_id", "eq"],
  request: ["request_id", "eq"],
  token: ["agent_token", "eq"],
  since: ["at", "gte", (text) => dayStart(text, 0)],
  until: ["at", "lt", (text) => dayStart(text, 1)],
};

/** The start of a local day, `later` days after the given one; null if the text is not a day. */
function dayStart(text: string, later: number): string | null {
  const day = new Date(`${text}T00:00`);
  day.setDate(day.getDate() + later);
  return Number.isNaN(day.getTime()) ? null : day.toISOString();
}

/** The parameters that this person may filter by. */
export function filterNames(model: Model): string[] {
  return Object.entries(FILTERS).flatMap(([name, [field, op]]) => {
    const knownField = fieldOf(model, field);
    return knownField && operators(knownField).includes(op) ? [name] : [];
  });
}

export function conditions(model: Model): Condition[] {
  return filterNames(model).flatMap((name) => {
    const [field, op, readText] = FILTERS[name] ?? ["", "eq" as Op];
    const filterText = query.value.get(name)?.trim() ?? "";
    const value = filterText && readText ? readText(filterText) : filterText;
    return value ? [{ field, op, value }] : [];
  });
}

export function linkTo(entry: Row): string {
  return `/audit/${encodeURIComponent(entry.id)}`;
}
