// Measures for how long a plan was visible before its approval, and decides whether to ask for confirmation. The
// counts are kept only in the memory of this tab.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

/** An approval before this time is hasty: no one can have read the plan. */
export const HASTY_S = 4;
/** One in this many hasty approvals must be confirmed. */
export const CONFIRM_EVERY = 3;

interface ApprovalStatistics {
  hasty: number;
  count: number;
  totalSeconds: number;
}

/** The approvals since the page was loaded. */
export const approvalStatistics = signal<ApprovalStatistics>({ hasty: 0, count: 0, totalSeconds: 0 });

export function recordApproval(seconds: number): void {
  const { hasty, count, totalSeconds } = approvalStatistics.peek();
  approvalStatistics.value = {
    hasty: hasty + (seconds < HASTY_S ? 1 : 0),
    count: count + 1,
    totalSeconds: totalSeconds + seconds,
  };
}

/** Whether an approval after this many seconds must be confirmed. */
export function needsConfirmation(seconds: number): boolean {
  return seconds < HASTY_S && (approvalStatistics.peek().hasty + 1) % CONFIRM_EVERY === 0;
}

/** The seconds for which the plan with this id was visible. The count stops while the tab is hidden. */
export function useSecondsOnScreen(shownId: string | undefined): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    setSeconds(0);
    const timer = setInterval(() => document.visibilityState === "visible" && setSeconds((seconds) => seconds + 1), 1000);
    return () => clearInterval(timer);
  }, [shownId]);
  return seconds;
}
