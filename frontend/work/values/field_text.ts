// Converts the value of a field to text for a form, and parses text to a value for the API.
import type { Field } from "../api";
import { moneyToText, parseMoney } from "./money";
import { translator } from "../../shared/i18n";

const t = translator("values");

export type ParsedValue = { value: unknown } | { error: string };

/** The value as text for a control; "" for an empty value. */
export function valueToText(field: Field, value: unknown): string {
  if (value === null || value === undefined) {
    return "";
  }
  return field.kind === "money" && typeof value === "number" ? moneyToText(value) : String(value);
}

/** Parse the typed text to a value or an error. The server checks everything else. */
export function parseText(field: Field, text: string): ParsedValue {
  if (text === "") {
    return { value: null };
  }
  switch (field.kind) {
    case "money": {
      const value = parseMoney(text);
      return value === null ? { error: t("money.fault", { label: field.label }) } : { value };
    }
    case "number": {
      const value = Number(text);
      const isWhole = /^-?\d+$/.test(text.trim()) && Number.isSafeInteger(value);
      return isWhole ? { value } : { error: t("number.fault", { label: field.label }) };
    }
    case "bool":
      return { value: text === "true" };
    default:
      return { value: text };
  }
}
