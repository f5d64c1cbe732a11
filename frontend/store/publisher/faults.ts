// What is wrong with a form, in the words of the page: what is missing before it is sent, and what the store refused.
import { Problem, type Fault } from "../../shared/problem";
import { say } from "./faults_say";
import { say as publisher } from "./say";

/** Refuse to send a form that lacks something it needs: each field's label and value, by its name.
 *  @throws Problem that names every such field. */
export function need(fields: Record<string, readonly [label: string, value: string | readonly unknown[]]>): void {
  const errors = Object.entries(fields).flatMap(([parameter, [label, value]]) => {
    const isThere = typeof value === "string" ? value.trim() !== "" : value.length > 0;
    return isThere ? [] : [{ parameter, detail: parameter === "platforms" ? say("platforms.none") : say("needed", { label }) }];
  });
  if (errors.length) {
    throw new Problem(422, { detail: say("faults.text"), errors });
  }
}

/** The refusal with the types and lengths of its faults said as people say them; as it came where one is not known. */
export function worded(problem: Problem): Problem {
  const said = problem.faults.map((each) => ({ parameter: each.field.split("/")[0], detail: plain(each) }));
  if (!said.length || said.some((each) => each.detail === null)) {
    return problem;
  }
  return new Problem(problem.status, { code: problem.code, detail: say("faults.text"), errors: said }, problem.retryAfterS);
}

function plain({ field, detail }: Fault): string | null {
  const [, side, length] = /of length (>=|<=) (\d+)/.exec(detail) ?? [];
  if (side === "<=") {
    return say("too.long", { n: length ?? "" });
  }
  if (side === ">=") {
    return field === "platforms" ? say("platforms.none") : say("needed.here");
  }
  if (/matching regex/.test(detail)) {
    return field === "slug" ? publisher("slug.help") : say("not.so");
  }
  if (detail === "is no product of the organisation") {
    return say("products.unknown");
  }
  return /expected `(int|float)`/.test(detail) ? say("no.number") : null;
}
