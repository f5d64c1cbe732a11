// The open records of this person: which models have an owner, which records are open, and when they are due.
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { businessModels, mayRun, workflowField } from "../models";
import { optionTone } from "../values/options";
import type { Condition } from "../values/operators";

/** A model whose records have an owner, and the fields that a line shows. */
export interface OwnedModel {
  model: Model;
  owner: Field;
  state: Field | undefined;
  dueDateField: Field | undefined;
  money: Field | undefined;
}

export interface OwnRecords extends OwnedModel {
  /** Ordered by due date. */
  rows: Row[];
  total: number;
  filter: Condition[];
}

const MAX_RECORDS = 200;
const MAX_MODELS = 3;
const DUE_NAME = /(^|_)(due|close|deadline|by|until|end|ends)$|^due_/;
const CLOSED = ["good", "bad", undefined];

/** The date by which a record is due. */
export function dueField(model: Model): Field | undefined {
  const dates = model.fields.filter((field) => field.kind === "date" && !field.masked && DUE_NAME.test(field.name));
  const measureDate = dates.find((date) => model.measures?.some((measure) => measure.date === date.name));
  return measureDate ?? dates.at(-1);
}

/** The models with an owner field, those with amounts first. */
export function ownedModels(meta: Meta): OwnedModel[] {
  const ownedModels = businessModels(meta).flatMap((model): OwnedModel[] => {
    const owner = model.fields.find((field) => field.ref === "user" && !field.readonly && !field.masked);
    const money = model.fields.find((field) => field.kind === "money" && !field.masked);
    return owner && mayRun(model, "search") ? [{ model, owner, money, state: workflowField(model), dueDateField: dueField(model) }] : [];
  });
  return [...ownedModels.filter((ownedModel) => ownedModel.money), ...ownedModels.filter((ownedModel) => !ownedModel.money)].slice(0, MAX_MODELS);
}

/** The states of open records: all states except the good and bad end states and the grey states. */
export function openStates(state: Field): string[] {
  return (state.options ?? []).filter((option) => !CLOSED.includes(optionTone(state, option)));
}

/** The condition that a record is open. */
export function isOpen(state: Field | undefined): Condition[] {
  return state ? [{ field: state.name, op: "in", value: openStates(state) }] : [];
}

export async function loadOwnRecords(ownedModel: OwnedModel, me: string, signal: AbortSignal): Promise<OwnRecords> {
  const { model, owner, state, dueDateField } = ownedModel;
  const filter: Condition[] = [{ field: owner.name, op: "eq", value: me }, ...isOpen(state)];
  const order = dueDateField ? [{ field: dueDateField.name, dir: "asc" }] : [];
  const result = await run<{ rows: Row[]; total: number }>(model.name, "search", { filter, order, limit: MAX_RECORDS }, signal);
  return { ...ownedModel, ...result.value, filter };
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 14;
/** The maximum number of overdue rows if there are enough others. */
const MAX_OVERDUE = 2;

/** The number of days until a calendar date, negative for a past date. */
export function daysUntil(day: string, today: string): number {
  return Math.round((Date.parse(day) - Date.parse(today)) / DAY_MS);
}

/** Today's date in the time zone of this browser. */
export function today(now = new Date()): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}

/** The total amount, or undefined if not all records are loaded. */
export function amountOf({ money, rows, total }: OwnRecords): number | undefined {
  return money && rows.length === total ? rows.reduce((sum, row) => sum + (Number(row[money.name]) || 0), 0) : undefined;
}

/** The numbers of records that are due within a week, and that are overdue. */
export function dueCounts(ownRecords: readonly OwnRecords[], day: string): { week: number; overdue: number } {
  const days = ownRecords.flatMap(({ dueDateField, rows }) => (dueDateField ? rows.flatMap((row) => (row[dueDateField.name] ? daysUntil(String(row[dueDateField.name]), day) : [])) : []));
  return { week: days.filter((day) => day >= 0 && day < 7).length, overdue: days.filter((day) => day < 0).length };
}

/** The rows of a panel: first the most recently overdue records, then the records that are due next. */
export function nextRows({ dueDateField, rows }: OwnRecords, day: string, maxRows: number): Row[] {
  if (!dueDateField) {
    return rows.slice(0, maxRows);
  }
  const isPast = (row: Row) => Boolean(row[dueDateField.name]) && daysUntil(String(row[dueDateField.name]), day) < 0;
  const past = rows.filter(isPast);
  const coming = rows.filter((row) => !isPast(row)).slice(0, maxRows);
  const shownOverdue = Math.max(MAX_OVERDUE, maxRows - coming.length);
  return [...past.slice(-shownOverdue), ...coming].slice(0, maxRows);
}

/** The number of records that are overdue or due within two weeks. */
export function soonCount({ dueDateField, rows }: OwnRecords, day: string): number {
  return dueDateField ? rows.filter((row) => row[dueDateField.name] && daysUntil(String(row[dueDateField.name]), day) < SOON_DAYS).length : rows.length;
}
