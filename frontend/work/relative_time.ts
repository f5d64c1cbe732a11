// A short relative time for lists: "4 min", "2 hr", "3 days".
import { language, relativePast } from "../shared/i18n";

const UNITS = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000]] as const;

export function shortPast(value: string, now_ms = Date.now()): string {
  const passed_ms = Math.max(0, now_ms - Date.parse(value));
  const [unit, length_ms] = UNITS.find(([, unitLength_ms]) => passed_ms >= unitLength_ms) ?? [null, 1];
  if (unit === null) {
    return relativePast(new Date(now_ms).toISOString(), now_ms);
  }
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "short" }).format(Math.trunc(passed_ms / length_ms));
}
