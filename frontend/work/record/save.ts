// Saves changes of a record, and detects that another person changed it.
import { Problem } from "../../shared/problem";
import { attempt, type Model, type Row, run } from "../api";
import { cacheRecords } from "../referenced_records";

export type SaveResult =
  | { state: "saved"; row: Row }
  | { state: "proposed"; planId: string }
  /** Another person changed the record first; `theirs` is its present version. */
  | { state: "conflict"; theirs: Row }
  | { state: "refused"; problem: Problem };

const CHANGED = "record has changed";

/** Change fields of a record, unless it has changed since it was loaded. */
export async function save(model: Model, base: Row, changes: Record<string, unknown>, command = "update"): Promise<SaveResult> {
  try {
    const done = await attempt<Row>(model.name, command, { id: base.id, revision: base.revision, ...changes });
    if (!done.isDone) {
      return { state: "proposed", planId: done.planId };
    }
    cacheRecords(model, [done.value]);
    return { state: "saved", row: done.value };
  } catch (error) {
    const problem = Problem.from(error);
    if (problem.message.includes(CHANGED)) {
      return { state: "conflict", theirs: (await run<Row>(model.name, "get", { id: base.id })).value };
    }
    return { state: "refused", problem: withField(problem, model) };
  }
}

/** The problem, assigned to the field that its text names first. */
export function withField(problem: Problem, model: Model): Problem {
  const named = model.fields.filter((each) => new RegExp(`\\b${model.name}\\.${each.name}\\b`).test(problem.message));
  const found = named.sort((a, b) => b.name.length - a.name.length)[0];
  if (!found) {
    return problem;
  }
  const words = problem.message.replace(`${model.name}.${found.name}`, found.label);
  return new Problem(problem.status, { detail: words, errors: [{ parameter: found.name, detail: words }] }, problem.retryAfterS);
}
