// What is wrong with a form, in the words of the page: what is missing before it is sent, and what the store refused.
import { Problem, type Fault } from "../../shared/problem";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

/** Refuse to send a form that lacks something it needs: each field's label and value, by its name.
 *  @throws Problem that names every such field. */
export function need(fields: Record<string, readonly [label: string, value: string | readonly unknown[]]>): void {
  const errors = Object.entries(fields).flatMap(([parameter, [label, value]]) => {
    const isThere = typeof value === "string" ? value.trim() !== "" : value.length > 0;
    return isThere ? [] : [{ parameter, detail: parameter === "platforms" ? t("platforms.none") : t("needed", { label }) }];
  });
  if (errors.length) {
    throw new Problem(422, { detail: t("faults.text"), errors });
  }
}

/** The refusal with the types and lengths of its faults said as people say them; as it came where one is not known. */
export function worded(problem: Problem): Problem {
  const said = problem.faults.map((each) => ({ parameter: each.field.split("/")[0], detail: plain(each) }));
  if (!said.length || said.some((each) => each.detail === null)) {
    return problem;
  }
  return new Problem(problem.status, { code: problem.code, detail: t("faults.text"), errors: said }, problem.retryAfterS);
}

function plain({ field, detail }: Fault): string | null {
  const [, side, length] = /of length (>=|<=) (\d+)/.exec(detail) ?? [];
  if (side === "<=") {
    return t("too.long", { n: length ?? "" });
  }
  if (side === ">=") {
    return field === "platforms" ? t("platforms.none") : t("needed.here");
  }
  if (/matching regex/.test(detail)) {
    return field === "slug" ? t("slug.help") : t("not.so");
  }
  if (detail === "does not belong to the organisation") {
    return t("products.unknown");
  }
  return /expected `(int|float)`/.test(detail) ? t("no.number") : null;
}
