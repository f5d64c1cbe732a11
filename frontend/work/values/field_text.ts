// A field's value as text in a form, and parsed as the API takes it.
import type { Field } from "../api";
import { moneyToText, parseMoney } from "./money";
import { translator } from "../../shared/i18n";

const t = translator("values");

export type ParsedValue = { value: unknown } | { fault: string };

/** The value as a control holds it; empty is "". */
export function valueToText(field: Field, value: unknown): string {
  if (value === null || value === undefined) {
    return "";
  }
  return field.kind === "money" && typeof value === "number" ? moneyToText(value) : String(value);
}

/** The value of what was typed, or what is wrong with it; all else the server judges. */
export function parseText(field: Field, text: string): ParsedValue {
  if (text === "") {
    return { value: null };
  }
  switch (field.kind) {
    case "money": {
      const value = parseMoney(text);
      return value === null ? { fault: t("money.fault", { label: field.label }) } : { value };
    }
    case "number": {
      const value = Number(text);
      const isWhole = /^-?\d+$/.test(text.trim()) && Number.isSafeInteger(value);
      return isWhole ? { value } : { fault: t("number.fault", { label: field.label }) };
    }
    case "bool":
      return { value: text === "true" };
    default:
      return { value: text };
  }
}
