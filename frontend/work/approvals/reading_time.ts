// The time a plan was on screen before its approval, which decides whether to ask for confirmation. Kept in this tab.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

/** An approval before this time is hasty: no one can have read the plan. */
export const HASTY_S = 4;
/** One in this many hasty approvals must be confirmed. */
export const CONFIRM_EVERY = 3;

interface ApprovalStatistics {
  hasty: number;
  all: number;
  seconds: number;
}

/** The approvals since the page was loaded. */
export const approvalStatistics = signal<ApprovalStatistics>({ hasty: 0, all: 0, seconds: 0 });

export function recordApproval(seconds: number): void {
  const { hasty, all, seconds: secondsBefore } = approvalStatistics.peek();
  approvalStatistics.value = { hasty: hasty + (seconds < HASTY_S ? 1 : 0), all: all + 1, seconds: secondsBefore + seconds };
}

/** Whether an approval after this many seconds must be confirmed. */
export function needsConfirmation(seconds: number): boolean {
  return seconds < HASTY_S && (approvalStatistics.peek().hasty + 1) % CONFIRM_EVERY === 0;
}

/** The seconds for which this was on screen, without the time in which another tab or window was in front. */
export function useSecondsOnScreen(shownId: string | undefined): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    setSeconds(0);
    const timer = setInterval(() => document.visibilityState === "visible" && setSeconds((seconds) => seconds + 1), 1000);
    return () => clearInterval(timer);
  }, [shownId]);
  return seconds;
}
