// The state of a request: loading, failed, or loaded. A new request aborts the previous one.
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./problem";
import { isSignedIn } from "./session";

export type RequestState<Value> =
  | { state: "loading"; reload: () => void }
  | { state: "failed"; problem: Problem; reload: () => void }
  | { state: "loaded"; value: Value; reload: () => void };

/** Sends the request whenever a dependency changes. With `keepsPrevious`, the previous value stays until the new one arrives. */
export function useRequest<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  dependencies: readonly unknown[],
  { keepsPrevious = false }: { keepsPrevious?: boolean } = {},
): RequestState<Value> {
  const [round, setRound] = useState(0);
  const [outcome, setOutcome] = useState<{ value: Value } | { problem: Problem } | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    if (!keepsPrevious) {
      setOutcome(null);
    }
    load(controller.signal).then(
      (value) => controller.signal.aborted || setOutcome({ value }),
      (error: unknown) => {
        if (!controller.signal.aborted) {
          setOutcome({ problem: Problem.from(error) });
        }
      },
    );
    return () => controller.abort();
  }, [...dependencies, round]);
  const reload = () => setRound((round) => round + 1);
  const isOut = outcome !== null && "problem" in outcome && outcome.problem.status === 401;
  const isIn = isSignedIn.value === true;
  useEffect(() => {
    // The session had ended: repeat the request after the next sign-in.
    if (isOut && isIn) {
      reload();
    }
  }, [isIn]);
  if (outcome === null) {
    return { state: "loading", reload };
  }
  return "problem" in outcome ? { state: "failed", ...outcome, reload } : { state: "loaded", ...outcome, reload };
}
