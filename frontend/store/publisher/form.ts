// Forms of the publisher's pages: sending one at a time, required fields, and refusals in plain words.
import { useRef, useState } from "preact/hooks";
import { Problem, type Fault } from "../../shared/problem";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

export function useSubmit() {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const running = useRef(false);
  /** Whether it was done; what was refused stands in `problem`. */
  const run = async (act: () => Promise<void>): Promise<boolean> => {
    if (running.current) {
      return false;
    }
    running.current = true;
    setBusy(true);
    setProblem(null);
    try {
      await act();
      return true;
    } catch (error) {
      setProblem(error instanceof Problem ? inPlainWords(error) : new Problem(0, { detail: String(error) }));
      return false;
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return { isBusy, problem, setProblem, run };
}

/** A fresh key for a request that may be sent twice. */
export function idempotencyHeader(): Record<string, string> {
  return { "Idempotency-Key": crypto.randomUUID() };
}

/** What is wrong with a field, or with a part of it, by its name. */
export function faultOfField(problem: Problem | null, field: string): string | undefined {
  return problem?.faults.find((each) => each.field.split("/")[0] === field)?.detail;
}

/** Refuse to send a form that lacks something it needs: each field's label and value, by its name.
 *  @throws Problem that names every such field. */
export function requireFields(fields: Record<string, readonly [label: string, value: string | readonly unknown[]]>): void {
  const errors = Object.entries(fields).flatMap(([parameter, [label, value]]) => {
    const isThere = typeof value === "string" ? value.trim() !== "" : value.length > 0;
    return isThere ? [] : [{ parameter, detail: parameter === "platforms" ? t("platforms.none") : t("needed", { label }) }];
  });
  if (errors.length) {
    throw new Problem(422, { detail: t("faults.text"), errors });
  }
}

/** The refusal with the types and lengths of its faults said as people say them; as it came where one is not known. */
export function inPlainWords(problem: Problem): Problem {
  const said = problem.faults.map((each) => ({ parameter: each.field.split("/")[0], detail: plainDetail(each) }));
  if (!said.length || said.some((each) => each.detail === null)) {
    return problem;
  }
  return new Problem(problem.status, { code: problem.code, detail: t("faults.text"), errors: said }, problem.retryAfterS);
}

function plainDetail({ field, detail }: Fault): string | null {
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
