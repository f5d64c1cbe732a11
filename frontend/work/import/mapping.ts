// From the columns of a file to the fields of a model.
import { number } from "../../shared/words";
import type { Field, Model } from "../api";
import { fieldOf, governed } from "../models";
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

/** The field that a column is called after. Money is an amount under its label, which pages write it by; under the name
 *  that the API has for it, minor units. */
export function guessed(model: Model, head: readonly string[]): string[] {
  const plain = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const all = fields(model);
  return head.map((column) => {
    const labelled = all.find((each) => plain(each.label) === plain(column));
    const found = all.find((each) => each.name === column) ?? labelled ?? all.find((each) => plain(each.name) === plain(column));
    return found?.kind === "money" && found === labelled && found.name !== column ? `${found.name}:amount` : (found?.name ?? "");
  });
}

/** An export's cell without the apostrophe that keeps a spreadsheet from running it. */
function bare(text: string): string {
  return /^'+[=+\-@\t\r]/.test(text) ? text.slice(1) : text;
}

/** What the API says of a row, with the fields called what the pages call them. */
export function inWords(model: Model, error: string): string {
  return error.replace(new RegExp(`\\b${model.name}\\.(\\w+)`, "g"), (whole, name: string) => fieldOf(model, name)?.label ?? whole);
}

/** The file as the API takes it. @throws Error in words for people. */
export function mapped(model: Model, rows: readonly string[][], mapping: Mapping): string {
  const kept = mapping.flatMap((name, column) => (name ? [{ name, column }] : []));
  if (kept.length === 0) {
    throw new Error(say("fault.none"));
  }
  const body = rows.slice(1).map((row, place) =>
    kept.map(({ name, column }) => {
      const text = bare(row[column] ?? "");
      if (!name.endsWith(":amount") || text === "") {
        return text;
      }
      const value = minor(text);
      if (value === null) {
        const label = fieldOf(model, name.replace(":amount", ""))?.label ?? name;
        throw new Error(say("fault.amount", { label, text, row: number(place + 1) }));
      }
      return String(value);
    }),
  );
  return written([kept.map(({ name }) => name.replace(":amount", "")), ...body]);
}
