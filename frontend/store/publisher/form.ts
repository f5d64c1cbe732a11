// The publisher's forms: one request at a time, required fields, and errors in the language of the page.
import { useRef, useState } from "preact/hooks";
import { Problem, type FieldError } from "../../shared/problem";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

export function useSubmit() {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const isRunning = useRef(false);
  /** Run a request. Return whether it succeeded; `problem` contains the error. */
  const run = async (act: () => Promise<void>): Promise<boolean> => {
    if (isRunning.current) {
      return false;
    }
    isRunning.current = true;
    setBusy(true);
    setProblem(null);
    try {
      await act();
      return true;
    } catch (error) {
      setProblem(error instanceof Problem ? inPlainWords(error) : new Problem(0, { detail: String(error) }));
      return false;
    } finally {
      isRunning.current = false;
      setBusy(false);
    }
  };
  return { isBusy, problem, setProblem, run };
}

/** A header with a new Idempotency-Key. */
export function idempotencyHeader(): Record<string, string> {
  return { "Idempotency-Key": crypto.randomUUID() };
}

/** The error of a field, or of a part of it. */
export function errorOfField(problem: Problem | null, field: string): string | undefined {
  return problem?.fieldErrors.find((error) => error.field.split("/")[0] === field)?.detail;
}

/** Check that required fields are filled in. `fields` maps names to labels and values.
 *  @throws Problem that names every empty field. */
export function requireFields(fields: Record<string, readonly [label: string, value: string | readonly unknown[]]>): void {
  const errors = Object.entries(fields).flatMap(([parameter, [label, value]]) => {
    const isThere = typeof value === "string" ? value.trim() !== "" : value.length > 0;
    return isThere ? [] : [{ parameter, detail: parameter === "platforms" ? t("platforms.none") : t("needed", { label }) }];
  });
  if (errors.length) {
    throw new Problem(422, { detail: t("faults.text"), errors });
  }
}

/** Translate the errors of all fields. The problem stays unchanged if one of its rules is unknown to the page. */
export function inPlainWords(problem: Problem): Problem {
  const errors = problem.fieldErrors.map((error) => ({ parameter: error.field.split("/")[0], detail: plainDetail(error) }));
  if (!errors.length || errors.some((error) => error.detail === null)) {
    return problem;
  }
  return new Problem(problem.status, { code: problem.code, detail: t("faults.text"), errors }, problem.retryAfterS);
}

/** Translate the error of one field, or return null if its rule is unknown to the page. */
function plainDetail({ field, detail }: FieldError): string | null {
  const [, bound, count, unit] = /^must have at (most|least) (\d+) (\w+)$/.exec(detail) ?? [];
  if (bound === "most") {
    return t(unit === "characters" ? "too.long" : "too.many", { n: count ?? "" });
  }
  if (bound === "least" || detail === "is required") {
    return field === "platforms" ? t("platforms.none") : t("needed.here");
  }
  if (detail.startsWith("has characters or a form")) {
    return field === "slug" ? t("slug.help") : t("not.so");
  }
  if (detail === "does not belong to the organisation") {
    return t("products.unknown");
  }
  return /^must be a (whole )?number$/.test(detail) ? t("no.number") : null;
}
