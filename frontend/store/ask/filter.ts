// Converts the API's filter of a question to a list of conditions, which the page shows as chips, and the list to text
// such as `kind=game; platform=linux`, which is also a valid question.
import type { Schemas } from "../api";
import { PLATFORMS } from "../platform";

/** The API's filter of a question. Members with their default value are omitted. */
export type Filter = Partial<Schemas["Filter"]>;
type Values = Partial<Schemas["Values"]>;

/** How values are compared: a record has "any" or "all" of them, or does "not" have one. Options have the mode "". */
export type MatchMode = keyof Values | "";

/** One value of a value condition (a property of the records) or of an option of the question. */
export interface Condition {
  name: string;
  mode: MatchMode;
  value: string;
}

export type Conditions = readonly Condition[];

const VALUE_CONDITIONS = ["kind", "platform", "access", "tag", "org", "license", "product", "title", "text", "version", "channel"] as const;
const QUESTION_OPTIONS = ["find", "when", "since", "until", "order", "limit", "answer", "by", "fields"] as const;
export type ConditionName = (typeof VALUE_CONDITIONS)[number] | (typeof QUESTION_OPTIONS)[number];

/** The values of the value conditions that have a fixed list of values. */
export const CONDITION_VALUES: Readonly<Record<string, readonly string[]>> = {
  kind: ["game", "app", "tool"],
  platform: Object.keys(PLATFORMS),
  channel: ["stable", "beta", "nightly", "alpha"],
  access: ["free", "entitled"],
};

/** The values of the options that have a fixed list of values. If an option has a default, it is the first value. */
export const OPTION_VALUES: Readonly<Record<string, readonly string[]>> = {
  find: ["products", "releases", "publishers"],
  when: ["any", "first", "last", "none"],
  order: ["title", "newest", "oldest", "releases", "platforms", "products"],
  answer: ["list", "count", "exists", "fields", "breakdown", "compare"],
  by: ["kind", "platform", "channel", "org", "license", "tag"],
  fields: [
    "org", "kind", "platforms", "channels", "tags", "versions", "published_at", "notes", "license", "access", "homepage", "artifacts",
  ],
};

const OPTIONS_WITH_DEFAULT = ["find", "when", "order", "answer"];

const isValueCondition = (name: string) => (VALUE_CONDITIONS as readonly string[]).includes(name);

/** The conditions of a filter, in a fixed order. */
export function conditions(filter: Filter | null): Conditions {
  if (filter === null) {
    return [];
  }
  const valueConditions = VALUE_CONDITIONS.flatMap((name) => {
    const values: Values = (name === "channel" ? filter.channel : filter.where?.[name]) ?? {};
    return (["any", "all", "not"] as const).flatMap((mode) => (values[mode] ?? []).map((value) => ({ name, mode, value })));
  });
  const options = QUESTION_OPTIONS.flatMap((name) => {
    const value = filter[name];
    const values: readonly unknown[] = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
    return values.map((value) => ({ name, mode: "" as const, value: String(value) }));
  });
  return [...valueConditions, ...options];
}

/** The conditions as a question with exactly their meaning: `kind=game; platform=linux&macos; platform!=windows`. */
export function asText(conditions: Conditions): string {
  const parts = [...VALUE_CONDITIONS, ...QUESTION_OPTIONS].flatMap((name) =>
    (["any", "all", "not", ""] as const).flatMap((mode) => {
      const values = conditions.filter((condition) => condition.name === name && condition.mode === mode).map((condition) => quoted(condition.value));
      return values.length ? [name + (mode === "not" ? "!=" : "=") + values.join(mode === "all" ? "&" : "|")] : [];
    }),
  );
  return parts.join("; ");
}

function quoted(value: string): string {
  // Times (2026-10-01T00:00:00Z) and names of fields (published_at) need no quotes.
  return /^[\p{L}\p{N}.:_-]+$/u.test(value) ? value : `"${value.replaceAll('"', "'")}"`;
}

/** Remove a condition, and conditions that have no meaning without it. */
export function withoutCondition(conditions: Conditions, condition: Condition): Conditions {
  const remaining = conditions.filter((other) => other !== condition);
  const hasRange = remaining.some(({ name }) => name === "since" || name === "until");
  const depends = ({ name, value }: Condition) =>
    (name === "when" && /^(since|until)$/.test(condition.name) && !hasRange) ||
    ((name === "by" || name === "fields") && condition.name === "answer") ||
    (name === "answer" && value === "breakdown" && condition.name === "by");
  return remaining.filter((other) => !depends(other));
}

/** Replace the value of a condition. If the value is the option's default, remove the condition. */
export function withValue(conditions: Conditions, oldCondition: Condition, value: string): Conditions {
  if (OPTIONS_WITH_DEFAULT.includes(oldCondition.name) && value === OPTION_VALUES[oldCondition.name]?.[0]) {
    return withoutCondition(conditions, oldCondition);
  }
  const newConditions = conditions.map((condition) => (condition === oldCondition ? { ...oldCondition, value } : condition));
  return oldCondition.name === "answer" ? adjustedToAnswer(newConditions, value) : newConditions;
}

/** Add a condition. */
export function withCondition(conditions: Conditions, name: string, value: string): Conditions {
  const newConditions = [...conditions, { name, mode: isValueCondition(name) ? ("any" as const) : ("" as const), value }];
  return name === "answer" ? adjustedToAnswer(newConditions, value) : newConditions;
}

/** Switch between including and excluding the value. */
export function withModeToggled(conditions: Conditions, oldCondition: Condition): Conditions {
  return conditions.map((condition) => (condition === oldCondition ? { ...oldCondition, mode: oldCondition.mode === "not" ? "any" : "not" } : condition));
}

/** Remove the options that the answer does not have. Add `by` to a breakdown without it. */
function adjustedToAnswer(conditions: Conditions, answer: string): Conditions {
  const kept = conditions.filter(({ name }) => (name !== "by" || answer === "breakdown") && (name !== "fields" || answer === "fields"));
  const isComplete = answer !== "breakdown" || kept.some(({ name }) => name === "by");
  return isComplete ? kept : [...kept, { name: "by", mode: "", value: "kind" }];
}
