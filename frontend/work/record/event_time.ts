// The time of a timeline event: relative within a week, or else date and time.
import { dateTime, relativePast } from "../../shared/i18n";

const RECENT_MS = 7 * 86_400_000;

export function eventTime(instant: string): string {
  return Date.now() - Date.parse(instant) < RECENT_MS ? relativePast(instant) : dateTime(instant);
}
