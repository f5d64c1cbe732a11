// Runs one command for many records: one API call after another, with a result for each record.
import { Problem } from "../../shared/problem";
import { type Action, attempt, type Model, type Row, run } from "../api";
import { actionsOf, workflowField, may } from "../models";

export interface BulkCommand {
  /** The command's name without its model: update, delete, qualify. */
  command: string;
  label: string;
  /** The fields to fill in: the inputs of an action, or the field that an update changes. */
  inputs: readonly string[];
  /** The number of these records for which the command is allowed, by their state when they were picked. */
  fits: (rows: readonly Row[]) => number;
}

export type BulkResult =
  | { row: Row; state: "done"; now: Row | null }
  | { row: Row; state: "proposed"; planId: string }
  | { row: Row; state: "refused"; why: string }
  | { row: Row; state: "left" };

const ENDED = 401;
const TOGETHER = 1000;

/** The actions for several records, then deletion. */
export function bulkCommands(model: Model, remove: string): BulkCommand[] {
  const actions = model.actions.filter((each) => model.commands.includes(each.id));
  const fits = (action: Action) => (rows: readonly Row[]) =>
    rows.filter((row) => actionsOf(model, row).some((each) => each.id === action.id)).length;
  return [
    ...actions.map((each) => ({
      command: each.id.slice(model.name.length + 1),
      label: each.label,
      inputs: each.inputs,
      fits: fits(each),
    })),
    ...(may(model, "delete") ? [{ command: "delete", label: remove, inputs: [], fits: (rows: readonly Row[]) => rows.length }] : []),
  ];
}

/** The fields that can be updated for many records, without masked fields. */
export function bulkEditableFields(model: Model) {
  const moved = workflowField(model)?.name;
  return may(model, "update") ? model.fields.filter((each) => !each.readonly && !each.masked && each.kind !== "structure" && each.name !== moved) : [];
}

export function hasBulkCommands(model: Model): boolean {
  return bulkEditableFields(model).length > 0 || bulkCommands(model, "").length > 0;
}

/** Run the command for each record with the revision that was picked, so that no later change is overwritten.
 *  `isStopped` is called before each record. Records that were not tried, or were tried after the session had
 *  ended, have the state `left`. */
export async function runAll(
  model: Model,
  command: string,
  rows: readonly Row[],
  values: object,
  onBecame: (became: BulkResult) => void,
  isStopped: () => boolean,
): Promise<void> {
  let hasEnded = false;
  for (const row of rows) {
    const became: BulkResult = hasEnded || isStopped() ? { row, state: "left" } : await once(model, command, row, values);
    hasEnded ||= became.state === "left";
    onBecame(became);
  }
}

/** Load these records again, without those that were deleted or are hidden now. */
export async function reloadRecords(model: Model, rows: readonly Row[]): Promise<Row[]> {
  const found: Row[] = [];
  for (let from = 0; from < rows.length; from += TOGETHER) {
    const value = rows.slice(from, from + TOGETHER).map((each) => each.id);
    found.push(...(await run<Row[]>(model.name, "list", { filter: [{ field: "id", op: "in", value }] })).value);
  }
  return found;
}

async function once(model: Model, command: string, row: Row, values: object): Promise<BulkResult> {
  try {
    const done = await attempt<Row>(model.name, command, { id: row.id, revision: row.revision, ...values });
    if (!done.isDone) {
      return { row, state: "proposed", planId: done.planId };
    }
    return { row, state: "done", now: command === "delete" || !done.value.revision ? null : done.value };
  } catch (error) {
    const problem = Problem.from(error);
    // The session has ended, so the other calls would fail too.
    return problem.status === ENDED ? { row, state: "left" } : { row, state: "refused", why: problem.message };
  }
}
