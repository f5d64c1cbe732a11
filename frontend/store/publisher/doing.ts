// Something a person does: one at a time, with what came of it.
import { useRef, useState } from "preact/hooks";
import { Problem } from "../../shared/problem";
import { worded } from "./faults";

export function useDoing() {
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
      setProblem(error instanceof Problem ? worded(error) : new Problem(0, { detail: String(error) }));
      return false;
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return { isBusy, problem, setProblem, run };
}

/** A fresh key for a request that may be sent twice. */
export function once(): Record<string, string> {
  return { "Idempotency-Key": crypto.randomUUID() };
}

/** What is wrong with a field, or with a part of it, by its name. */
export function faultAt(problem: Problem | null, field: string): string | undefined {
  return problem?.faults.find((each) => each.field.split("/")[0] === field)?.detail;
}
