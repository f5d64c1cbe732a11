// Runs one command for many records: one API call after another, with a result for each record.
import { Problem } from "../../shared/problem";
import { type Action, runOrPropose, type Model, type Row, run } from "../api";
import { actionsOf, workflowField, mayRun } from "../models";

export interface BulkCommand {
  /** The command's name without its model: update, delete, qualify. */
  command: string;
  label: string;
  /** The fields to fill in: the inputs of an action, or the field that an update changes. */
  inputs: readonly string[];
  /** The number of these records that are in a state in which the command is allowed. The state is the one that was
   *  loaded when the records were selected. */
  countAllowed: (rows: readonly Row[]) => number;
}

export type BulkResult =
  | { row: Row; state: "done"; updatedRow: Row | null }
  | { row: Row; state: "proposed"; planId: string }
  | { row: Row; state: "refused"; reason: string }
  | { row: Row; state: "skipped" };

const UNAUTHORIZED = 401;
const PAGE_SIZE = 1000;

/** The commands for several records: first the actions of the model, last the deletion. */
export function bulkCommands(model: Model, deleteLabel: string): BulkCommand[] {
  const actions = model.actions.filter((action) => model.commands.includes(action.id));
  const countAllowed = (action: Action) => (rows: readonly Row[]) =>
    rows.filter((row) => actionsOf(model, row).some((other) => other.id === action.id)).length;
  return [
    ...actions.map((action) => ({
      command: action.id.slice(model.name.length + 1),
      label: action.label,
      inputs: action.inputs,
      countAllowed: countAllowed(action),
    })),
    ...(mayRun(model, "delete") ? [{ command: "delete", label: deleteLabel, inputs: [], countAllowed: (rows: readonly Row[]) => rows.length }] : []),
  ];
}

/** The fields that can be updated for many records, without masked fields. */
export function bulkEditableFields(model: Model) {
  const stateFieldName = workflowField(model)?.name;
  return mayRun(model, "update") ? model.fields.filter((field) => !field.readonly && !field.masked && field.kind !== "structure" && field.name !== stateFieldName) : [];
}

export function hasBulkCommands(model: Model): boolean {
  return bulkEditableFields(model).length > 0 || bulkCommands(model, "").length > 0;
}

/** Run the command for each record. Each call contains the revision that was loaded when the record was selected, so
 *  the API refuses to overwrite a later change. Before each record, `isStopped` returns whether the person stopped the
 *  run. After a stop or after the end of the session, the remaining records have the state `skipped`. */
export async function runAll(
  model: Model,
  command: string,
  rows: readonly Row[],
  values: object,
  onResult: (result: BulkResult) => void,
  isStopped: () => boolean,
): Promise<void> {
  let skipsRest = false;
  for (const row of rows) {
    const result: BulkResult = skipsRest || isStopped() ? { row, state: "skipped" } : await runForRow(model, command, row, values);
    skipsRest ||= result.state === "skipped";
    onResult(result);
  }
}

/** Load these records again, without those that were deleted or are hidden now. */
export async function reloadRecords(model: Model, rows: readonly Row[]): Promise<Row[]> {
  const reloaded: Row[] = [];
  for (let start = 0; start < rows.length; start += PAGE_SIZE) {
    const value = rows.slice(start, start + PAGE_SIZE).map((row) => row.id);
    reloaded.push(...(await run<Row[]>(model.name, "list", { filter: [{ field: "id", op: "in", value }] })).value);
  }
  return reloaded;
}

async function runForRow(model: Model, command: string, row: Row, values: object): Promise<BulkResult> {
  try {
    const outcome = await runOrPropose<Row>(model.name, command, { id: row.id, revision: row.revision, ...values });
    if (!outcome.isDone) {
      return { row, state: "proposed", planId: outcome.planId };
    }
    return { row, state: "done", updatedRow: command === "delete" || !outcome.value.revision ? null : outcome.value };
  } catch (error) {
    const problem = Problem.from(error);
    // The session has ended, so all further calls would fail.
    return problem.status === UNAUTHORIZED ? { row, state: "skipped" } : { row, state: "refused", reason: problem.message };
  }
}
