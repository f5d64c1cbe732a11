// The filter of a question: a list of conditions (chips), and its text as key=value, which is also a valid question.
import type { Schemas } from "../api";
import { PLATFORMS } from "../platform";

/** The filter of the API, without members that have their default. */
export type Filter = Partial<Schemas["Filter"]>;
type Values = Partial<Schemas["Values"]>;

export type Sign = keyof Values | "";

/** A value of a slot (with its sign), or the value of a member (without a sign). */
export interface Condition {
  name: string;
  sign: Sign;
  value: string;
}

export type Conditions = readonly Condition[];

const SLOTS = ["kind", "platform", "access", "tag", "org", "license", "product", "title", "text", "version", "channel"] as const;
const MEMBERS = ["find", "when", "since", "until", "order", "limit", "answer", "by", "fields"] as const;
export type Name = (typeof SLOTS)[number] | (typeof MEMBERS)[number];

/** The values of slots with a fixed list of values. */
export const SLOT_VALUES: Readonly<Record<string, readonly string[]>> = {
  kind: ["game", "app", "tool"],
  platform: Object.keys(PLATFORMS),
  channel: ["stable", "beta", "nightly", "alpha"],
  access: ["free", "entitled"],
};

/** The values of members with a fixed list of values. If a member has a default, it is the first value. */
export const MEMBER_VALUES: Readonly<Record<string, readonly string[]>> = {
  find: ["products", "releases", "publishers"],
  when: ["any", "first", "last", "none"],
  order: ["title", "newest", "oldest", "releases", "platforms", "products"],
  answer: ["list", "count", "exists", "fields", "breakdown", "compare"],
  by: ["kind", "platform", "channel", "org", "license", "tag"],
  fields: [
    "org", "kind", "platforms", "channels", "tags", "versions", "published_at", "notes", "license", "access", "homepage", "artifacts",
  ],
};

const HAVE_DEFAULT = ["find", "when", "order", "answer"];

const isSlot = (name: string) => (SLOTS as readonly string[]).includes(name);

/** The conditions of a filter, in a fixed order. */
export function conditions(filter: Filter | null): Conditions {
  if (filter === null) {
    return [];
  }
  const slots = SLOTS.flatMap((name) => {
    const values: Values = (name === "channel" ? filter.channel : filter.where?.[name]) ?? {};
    return (["any", "all", "not"] as const).flatMap((sign) => (values[sign] ?? []).map((value) => ({ name, sign, value })));
  });
  const members = MEMBERS.flatMap((name) => {
    const value = filter[name];
    const values: readonly unknown[] = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
    return values.map((each) => ({ name, sign: "" as const, value: String(each) }));
  });
  return [...slots, ...members];
}

/** The conditions as a question with exactly their meaning: `kind=game; platform=linux&macos; platform!=windows`. */
export function asText(all: Conditions): string {
  const pieces = [...SLOTS, ...MEMBERS].flatMap((name) =>
    (["any", "all", "not", ""] as const).flatMap((sign) => {
      const values = all.filter((each) => each.name === name && each.sign === sign).map((each) => quoted(each.value));
      return values.length ? [name + (sign === "not" ? "!=" : "=") + values.join(sign === "all" ? "&" : "|")] : [];
    }),
  );
  return pieces.join("; ");
}

function quoted(value: string): string {
  // Times (2026-10-01T00:00:00Z) and names of members (published_at) need no quotes.
  return /^[\p{L}\p{N}.:_-]+$/u.test(value) ? value : `"${value.replaceAll('"', "'")}"`;
}

/** Remove a condition, and those that have no meaning without it. */
export function without(all: Conditions, dropped: Condition): Conditions {
  const left = all.filter((each) => each !== dropped);
  const hasRange = left.some(({ name }) => name === "since" || name === "until");
  const depends = ({ name, value }: Condition) =>
    (name === "when" && /^(since|until)$/.test(dropped.name) && !hasRange) ||
    ((name === "by" || name === "fields") && dropped.name === "answer") ||
    (name === "answer" && value === "breakdown" && dropped.name === "by");
  return left.filter((each) => !depends(each));
}

/** Replace the value of a condition. With a member's default, the condition is removed. */
export function withValue(all: Conditions, old: Condition, value: string): Conditions {
  if (HAVE_DEFAULT.includes(old.name) && value === MEMBER_VALUES[old.name]?.[0]) {
    return without(all, old);
  }
  const next = all.map((each) => (each === old ? { ...old, value } : each));
  return old.name === "answer" ? fitting(next, value) : next;
}

/** Add a condition. */
export function withCondition(all: Conditions, name: string, value: string): Conditions {
  const next = [...all, { name, sign: isSlot(name) ? ("any" as const) : ("" as const), value }];
  return name === "answer" ? fitting(next, value) : next;
}

/** Switch between including and excluding the value. */
export function withSignToggled(all: Conditions, old: Condition): Conditions {
  return all.map((each) => (each === old ? { ...old, sign: old.sign === "not" ? "any" : "not" } : each));
}

/** Add or remove the member that only a breakdown has. */
function fitting(all: Conditions, answer: string): Conditions {
  const left = all.filter(({ name }) => (name !== "by" || answer === "breakdown") && (name !== "fields" || answer === "fields"));
  const isCounted = answer !== "breakdown" || left.some(({ name }) => name === "by");
  return isCounted ? left : [...left, { name: "by", sign: "", value: "kind" }];
}
