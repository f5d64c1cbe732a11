// From the columns of a file to the fields of a model.
import { number } from "../../shared/words";
import type { Field, Model } from "../api";
import { governed } from "../models";
import { minor } from "../values/decimal";
import { say } from "./say";
import { written } from "./csv";

/** For each column: the field's name, "name:amount" for money written with a decimal point, or "" to leave it out. */
export type Mapping = readonly string[];

export function fields(model: Model): Field[] {
  return model.fields.filter((each) => !each.readonly && each.name !== governed(model)?.name && each.kind !== "structure");
}

export function choices(model: Model): (readonly [string, string])[] {
  return fields(model).flatMap((each) =>
    each.kind === "money"
      ? [
          [`${each.name}:amount`, say("amount", { label: each.label })] as const,
          [each.name, say("minor", { label: each.label })] as const,
        ]
      : [[each.name, each.label] as const],
  );
}

/** The field that a column is called after. */
export function guessed(model: Model, head: readonly string[]): string[] {
  const plain = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  return head.map((column) => {
    const found = fields(model).find((each) => [each.name, each.label].map(plain).includes(plain(column)));
    return found?.name ?? "";
  });
}

/** The file as the API takes it. @throws Error in words for people. */
export function mapped(rows: readonly string[][], mapping: Mapping): string {
  const kept = mapping.flatMap((name, column) => (name ? [{ name, column }] : []));
  if (kept.length === 0) {
    throw new Error(say("fault.none"));
  }
  const body = rows.slice(1).map((row, place) =>
    kept.map(({ name, column }) => {
      const text = row[column] ?? "";
      if (!name.endsWith(":amount") || text === "") {
        return text;
      }
      const value = minor(text);
      if (value === null) {
        throw new Error(say("fault.amount", { text, row: number(place + 1) }));
      }
      return String(value);
    }),
  );
  return written([kept.map(({ name }) => name.replace(":amount", "")), ...body]);
}
