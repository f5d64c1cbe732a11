// Something a page asks for: on its way, there, or refused; the newest question wins.
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./problem";
import { isSignedIn } from "./session";

export type Asked<Value> =
  | { state: "loading"; again: () => void }
  | { state: "failed"; problem: Problem; again: () => void }
  | { state: "there"; value: Value; again: () => void };

/** Ask whenever `about` changes. Until the new answer is there, the last one stays where `keeps` says so. */
export function useAsked<Value>(
  ask: (signal: AbortSignal) => Promise<Value>,
  about: readonly unknown[],
  { keeps = false }: { keeps?: boolean } = {},
): Asked<Value> {
  const [round, setRound] = useState(0);
  const [found, setFound] = useState<{ value: Value } | { problem: Problem } | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    if (!keeps) {
      setFound(null);
    }
    ask(controller.signal).then(
      (value) => controller.signal.aborted || setFound({ value }),
      (error: unknown) => {
        if (!controller.signal.aborted) {
          setFound({ problem: Problem.from(error) });
        }
      },
    );
    return () => controller.abort();
  }, [...about, round]);
  const again = () => setRound((last) => last + 1);
  const isOut = found !== null && "problem" in found && found.problem.status === 401;
  const isIn = isSignedIn.value === true;
  useEffect(() => {
    // Refused because the session had ended: asked again as soon as there is a new one.
    if (isOut && isIn) {
      again();
    }
  }, [isIn]);
  if (found === null) {
    return { state: "loading", again };
  }
  return "problem" in found ? { state: "failed", ...found, again } : { state: "there", ...found, again };
}
