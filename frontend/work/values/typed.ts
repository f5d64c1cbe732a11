// A field's value as it is typed in a form, which is always text, and as the API takes it.
import type { Field } from "../api";
import { minor, typed as typedMoney } from "./decimal";
import { translator } from "../../shared/i18n";

const t = translator("values");

export type Read = { value: unknown } | { fault: string };

/** The value as a control holds it; empty is "". */
export function typed(field: Field, value: unknown): string {
  if (value === null || value === undefined) {
    return "";
  }
  return field.kind === "money" && typeof value === "number" ? typedMoney(value) : String(value);
}

/** The value of what was typed, or what is wrong with it; all else the server judges. */
export function read(field: Field, text: string): Read {
  if (text === "") {
    return { value: null };
  }
  switch (field.kind) {
    case "money": {
      const value = minor(text);
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
