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
  const [found, setFound] = useState<{ value: Value } | { problem: Problem } | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    if (!keepsPrevious) {
      setFound(null);
    }
    load(controller.signal).then(
      (value) => controller.signal.aborted || setFound({ value }),
      (error: unknown) => {
        if (!controller.signal.aborted) {
          setFound({ problem: Problem.from(error) });
        }
      },
    );
    return () => controller.abort();
  }, [...dependencies, round]);
  const reload = () => setRound((last) => last + 1);
  const isOut = found !== null && "problem" in found && found.problem.status === 401;
  const isIn = isSignedIn.value === true;
  useEffect(() => {
    // The session had ended: repeat the request after the next sign-in.
    if (isOut && isIn) {
      reload();
    }
  }, [isIn]);
  if (found === null) {
    return { state: "loading", reload };
  }
  return "problem" in found ? { state: "failed", ...found, reload } : { state: "loaded", ...found, reload };
}
