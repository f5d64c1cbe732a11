// The periods of a dashboard: first and last day, and the step of its charts.
import { today } from "../home/own_records";

export type Step = "day" | "week" | "month";

export interface Period {
  from: string;
  to: string;
  step: Step;
}

export const PERIODS = ["7d", "30d", "90d", "12w", "year", "custom"] as const;

const DAY_MS = 86_400_000;
const MAX_DAYS = 45;
const MAX_WEEKS_DAYS = 400;

export function addDays(day: string, count: number): string {
  return new Date(Date.parse(day) + count * DAY_MS).toISOString().slice(0, 10);
}

/** The first day of the step that contains the day. A week starts on Monday. */
export function startOf(day: string, step: Step): string {
  if (step === "month") {
    return `${day.slice(0, 8)}01`;
  }
  return step === "week" ? addDays(day, -((new Date(day).getUTCDay() + 6) % 7)) : day;
}

/** The first day of the next step, for a step that starts on this day. */
export function nextStart(day: string, step: Step): string {
  return step === "month" ? startOf(addDays(day, 31), "month") : addDays(day, step === "week" ? 7 : 1);
}

/** The first days of the steps in a period. */
export function startsOf({ from, to, step }: Period): string[] {
  const stepStarts: string[] = [];
  for (let day = startOf(from, step); day <= to; day = nextStart(day, step)) {
    stepStarts.push(day);
  }
  return stepStarts;
}

/** The named period up to today. A custom period has the given days. */
export function periodOf(name: string, from: string | null, to: string | null): Period {
  const lastDay = today();
  switch (name) {
    case "7d":
      return { from: addDays(lastDay, -6), to: lastDay, step: "day" };
    case "30d":
      return { from: addDays(lastDay, -29), to: lastDay, step: "day" };
    case "90d":
      return { from: addDays(lastDay, -89), to: lastDay, step: "week" };
    case "year":
      return { from: startOf(addDays(lastDay, -334), "month"), to: lastDay, step: "month" };
    case "custom": {
      const firstDay = from ?? addDays(lastDay, -29);
      const end = to ?? lastDay;
      const days = (Date.parse(end) - Date.parse(firstDay)) / DAY_MS;
      return { from: firstDay <= end ? firstDay : end, to: end, step: days <= MAX_DAYS ? "day" : days <= MAX_WEEKS_DAYS ? "week" : "month" };
    }
    default:
      return { from: startOf(addDays(lastDay, -77), "week"), to: lastDay, step: "week" };
  }
}

/** As many days as the period has, from today on. */
export function periodAhead({ from, to, step }: Period): Period {
  const firstDay = today();
  return { from: firstDay, to: addDays(firstDay, Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS)), step };
}

/** The preceding period of the same length. */
export function periodBefore({ from, to, step }: Period): Period {
  const length = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  return { from: addDays(from, -length), to: addDays(from, -1), step };
}
