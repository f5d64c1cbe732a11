// How far away an instant is, as people say it.
import { language } from "../../shared/words";

const STEPS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
] as const;

export function ago(instant: string, now_ms: number): string {
  const seconds = (Date.parse(instant) - now_ms) / 1000;
  const [unit, size] = STEPS.find(([, each]) => Math.abs(seconds) >= each) ?? ["second", 1];
  return new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(Math.round(seconds / size), unit);
}
