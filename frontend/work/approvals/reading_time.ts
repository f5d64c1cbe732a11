// How long a plan was on screen before it was approved, and when to ask for confirmation. It stays in this tab.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

/** Signed sooner, nobody has read it. */
export const HASTY_S = 4;
/** Among hasty ones every so many is shown once more. */
export const CONFIRM_EVERY = 3;

interface ApprovalStatistics {
  hasty: number;
  all: number;
  seconds: number;
}

/** What was signed since the page was loaded. */
export const approvalStatistics = signal<ApprovalStatistics>({ hasty: 0, all: 0, seconds: 0 });

export function recordApproval(seconds: number): void {
  const { hasty, all, seconds: before } = approvalStatistics.peek();
  approvalStatistics.value = { hasty: hasty + (seconds < HASTY_S ? 1 : 0), all: all + 1, seconds: before + seconds };
}

/** Whether what was looked at for so long is to be shown once more before it is signed. */
export function needsConfirmation(seconds: number): boolean {
  return seconds < HASTY_S && (approvalStatistics.peek().hasty + 1) % CONFIRM_EVERY === 0;
}

/** The seconds that this has been in sight; not while another tab or window is. */
export function useSecondsOnScreen(what: string | undefined): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    setSeconds(0);
    const timer = setInterval(() => document.visibilityState === "visible" && setSeconds((last) => last + 1), 1000);
    return () => clearInterval(timer);
  }, [what]);
  return seconds;
}
