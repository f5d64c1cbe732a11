// Saves changes of a record, and detects that another person changed it.
import { Problem } from "../../shared/problem";
import { runOrPropose, type Model, type Row, run } from "../api";
import { cacheRecords } from "../referenced_records";

export type SaveResult =
  | { state: "saved"; row: Row }
  | { state: "proposed"; planId: string }
  /** Another person changed the record first; `serverRecord` is its present version. */
  | { state: "conflict"; serverRecord: Row }
  | { state: "refused"; problem: Problem };

const CHANGED_MESSAGE = "record has changed";

/** Change fields of a record, unless it has changed since it was loaded. */
export async function save(model: Model, base: Row, changes: Record<string, unknown>, command = "update"): Promise<SaveResult> {
  try {
    const result = await runOrPropose<Row>(model.name, command, { id: base.id, revision: base.revision, ...changes });
    if (!result.isDone) {
      return { state: "proposed", planId: result.planId };
    }
    cacheRecords(model, [result.value]);
    return { state: "saved", row: result.value };
  } catch (error) {
    const problem = Problem.from(error);
    if (problem.message.includes(CHANGED_MESSAGE)) {
      return { state: "conflict", serverRecord: (await run<Row>(model.name, "get", { id: base.id })).value };
    }
    return { state: "refused", problem: withField(problem, model) };
  }
}

/** The problem, assigned to the field that its text names first. */
export function withField(problem: Problem, model: Model): Problem {
  const namedFields = model.fields.filter((field) => new RegExp(`\\b${model.name}\\.${field.name}\\b`).test(problem.message));
  const longestNamed = namedFields.sort((a, b) => b.name.length - a.name.length)[0];
  if (!longestNamed) {
    return problem;
  }
  const detail = problem.message.replace(`${model.name}.${longestNamed.name}`, longestNamed.label);
  return new Problem(problem.status, { detail, errors: [{ parameter: longestNamed.name, detail }] }, problem.retryAfterS);
}
