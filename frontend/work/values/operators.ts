// The operators of the API's filters, by kind of field.
import type { Condition, Field, Operator } from "../api";
import { parseText } from "./field_text";

export type { Condition, Operator };

const EQUALITY: readonly Operator[] = ["eq", "ne", "in", "is_null"];
const RANGES: readonly Operator[] = ["gt", "gte", "lt", "lte"];

/** The operators that the API accepts for a field; none for masked fields and kinds that cannot be compared. */
export function operators(field: Field): readonly Operator[] {
  const accepted = operatorsOfKind(field);
  return field.sortable === false ? accepted.filter((operator) => !RANGES.includes(operator)) : accepted;
}

function operatorsOfKind(field: Field): readonly Operator[] {
  if (field.masked || field.kind === "structure") {
    return [];
  }
  switch (field.kind) {
    case "text":
    case "longtext":
      return ["contains", ...EQUALITY, ...RANGES];
    case "bool":
    case "ref":
      return EQUALITY;
    default:
      return [...EQUALITY, ...RANGES];
  }
}

/** Parse the typed value of a condition; for `in`, one value per line. Null if it is not valid. */
export function operand(field: Field, op: Operator, text: string): { value: unknown } | null {
  if (op === "is_null") {
    return { value: text !== "false" };
  }
  if (op !== "in") {
    const parsedValue = parseText(field, text);
    return "value" in parsedValue && parsedValue.value !== null ? parsedValue : null;
  }
  const parsedLines = text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => parseText(field, line));
  const values = parsedLines.flatMap((line) => ("value" in line ? [line.value] : []));
  return values.length > 0 && values.length === parsedLines.length ? { value: values } : null;
}
