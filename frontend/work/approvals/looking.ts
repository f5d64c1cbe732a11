// How long a proposal was on screen before it was signed, and when to ask for a second look. It stays in this tab.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

/** Signed sooner, nobody has read it. */
export const HASTY_S = 4;
/** Among hasty ones every so many is shown once more. */
export const SAMPLED = 3;

interface Signed {
  hasty: number;
  all: number;
  seconds: number;
}

/** What was signed since the page was loaded. */
export const signed = signal<Signed>({ hasty: 0, all: 0, seconds: 0 });

export function note(seconds: number): void {
  const { hasty, all, seconds: before } = signed.peek();
  signed.value = { hasty: hasty + (seconds < HASTY_S ? 1 : 0), all: all + 1, seconds: before + seconds };
}

/** Whether what was looked at for so long is to be shown once more before it is signed. */
export function asksAgain(seconds: number): boolean {
  return seconds < HASTY_S && (signed.peek().hasty + 1) % SAMPLED === 0;
}

/** The seconds that this has been in sight; not while another tab or window is. */
export function useOnScreen(what: string | undefined): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    setSeconds(0);
    const timer = setInterval(() => document.visibilityState === "visible" && setSeconds((last) => last + 1), 1000);
    return () => clearInterval(timer);
  }, [what]);
  return seconds;
}
