// Translation, and dates, numbers and money in the language of the page. The texts are in locales/, one folder per language.

export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

const pageLanguage = document.documentElement.lang;
export const language: Language = pageLanguage in LANGUAGES ? (pageLanguage as Language) : "en";
/** The locale for dates: English dates look like "18 Nov 2026". */
export const dateLanguage = language === "en" ? "en-GB" : language;

type Values = Record<string, string | number>;

/** The texts of locales/en by namespace; locales/de has the same keys, which a test verifies. */
type Messages = typeof import("../locales/en/common.json") &
  typeof import("../locales/en/store.json") &
  typeof import("../locales/en/work.json");

declare global {
  /** The messages of this app in the language of the page, set by a script that the build generates from locales/. */
  var MESSAGES: Partial<Messages> | undefined;
}

const messages: Record<string, Record<string, string> | undefined> = globalThis.MESSAGES ?? {};

/** A function from a key of this namespace to its text; `{name}` in the text is replaced by the value of that name. */
export function translator<Namespace extends keyof Messages>(namespace: Namespace) {
  const texts = messages[namespace] ?? {};
  return (key: keyof Messages[Namespace] & string, values: Values = {}): string =>
    (texts[key] ?? key).replace(/\{(\w+)\}/g, (placeholder, name: string) => String(values[name] ?? placeholder));
}

/** A number with its word: `{n}` in the text is replaced by the number as the language writes it. */
export function plural(count: number, one: string, other: string): string {
  const form = new Intl.PluralRules(language).select(count) === "one" ? one : other;
  return form.replace("{n}", number(count));
}

/** Several words as a list: "one, two and three", or with the type "disjunction" "one, two or three". */
export function joinWords(words: readonly string[], type: "conjunction" | "disjunction" = "conjunction"): string {
  return new Intl.ListFormat(dateLanguage, { type }).format(words);
}

export function number(value: number): string {
  return new Intl.NumberFormat(language).format(value);
}

/** A percentage; with `isChange`, it has a sign. */
export function percent(value: number, isChange = true): string {
  const digits = Math.abs(value) < 0.1 ? 1 : 0;
  return new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: digits, ...(isChange ? { signDisplay: "exceptZero" } : {}) }).format(value);
}

export function money(minor: number, currency: string): string {
  const format = new Intl.NumberFormat(language, { style: "currency", currency });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(minor / 10 ** digits);
}

/** A size as people read it, in the units of the command line: 1 KiB is 1024 bytes. */
export function size(bytes: number): string {
  const units = ["KiB", "MiB", "GiB", "TiB"] as const;
  let step = 0;
  let count = bytes;
  for (; count >= 1024 && step < units.length; step += 1) count /= 1024;
  const unit = units[step - 1];
  if (!unit) return new Intl.NumberFormat(language, { style: "unit", unit: "byte", unitDisplay: "long" }).format(count);
  const format = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  return `${format.format(count)} ${unit}`;
}

/** A calendar date (2026-11-21), which has no time zone, or the local day of an instant. */
export function date(value: string): string {
  const isDay = value.length === 10;
  const zone = isDay ? { timeZone: "UTC" } : {};
  return new Intl.DateTimeFormat(dateLanguage, { dateStyle: "medium", ...zone }).format(new Date(value));
}

/** Day and short month of a calendar date, with the year unless it is the current one. */
export function shortDate(value: string, now = new Date()): string {
  const year = value.startsWith(String(now.getFullYear())) ? {} : ({ year: "numeric" } as const);
  return new Intl.DateTimeFormat(dateLanguage, { day: "numeric", month: "short", ...year, timeZone: "UTC" }).format(new Date(value));
}

/** A day with its weekday, without its year. */
export function longDay(value: Date): string {
  return new Intl.DateTimeFormat(dateLanguage, { weekday: "long", day: "numeric", month: "long" }).format(value);
}

/** How long ago an instant was; its date if that is more than seven days. */
export function sinceWhen(value: string, now_ms = Date.now()): string {
  return now_ms - Date.parse(value) < 7 * 86_400_000 ? relativePast(value, now_ms) : date(value);
}

/** How many days ago the local day of an instant was ("today", "yesterday", "5 days ago"); its date if that is more than 30 days. */
export function daysAgo(value: string): string {
  const start_ms = (date: Date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  const days = Math.max(0, (start_ms(new Date()) - start_ms(new Date(value))) / 86_400_000);
  return days > 30 ? date(value) : new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(-days || 0, "day");
}

export function dateTime(value: string): string {
  return new Intl.DateTimeFormat(dateLanguage, { dateStyle: "medium", timeStyle: "short" }).format(new Date(value));
}

/** The time with seconds for an instant today, otherwise day and time. */
export function timeOf(value: string, now = new Date()): string {
  const time = new Date(value);
  const isToday = time.toDateString() === now.toDateString();
  const shape = isToday ? ({ timeStyle: "medium" } as const) : ({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" } as const);
  return new Intl.DateTimeFormat(dateLanguage, shape).format(time);
}

/** How long ago an instant was, in the largest unit that fits. An instant in the future, from a clock that runs ahead, counts as now. */
export function relativePast(value: string, now_ms = Date.now()): string {
  return relative(Math.min(0, Date.parse(value) - now_ms));
}

/** How long it is until a future instant, in the largest unit that fits. */
export function relativeFuture(value: string, now_ms = Date.now()): string {
  return relative(Math.max(0, Date.parse(value) - now_ms));
}

function relative(distance_ms: number): string {
  const distance_s = distance_ms / 1000;
  const units = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3600], ["minute", 60]] as const;
  const [unit, length_s] = units.find(([, unitLength_s]) => Math.abs(distance_s) >= unitLength_s) ?? (["second", 1] as const);
  return new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(Math.trunc(distance_s / length_s) || 0, unit);
}

/** A duration in the largest unit that fits, rounded up. */
export function duration(seconds: number): string {
  const units = [["hour", 3600], ["minute", 60]] as const;
  const [unit, length_s] = units.find(([, unitLength_s]) => seconds >= unitLength_s) ?? (["second", 1] as const);
  return new Intl.NumberFormat(language, { style: "unit", unit }).format(Math.ceil(seconds / length_s));
}

/** Show the pages in another language from now on. */
export function setLanguage(language: Language): void {
  document.cookie = `countersign-language=${language}; Path=/; Max-Age=31536000; SameSite=Lax`;
  location.reload();
}
