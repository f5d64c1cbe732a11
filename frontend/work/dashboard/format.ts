// Formats the values of a measure. Amounts of money are whole minor units.
import { compact } from "../../shared/chart";
import { number, percent } from "../../shared/i18n";
import type { Field, Measure, Model } from "../api";
import { fieldOf } from "../models";
import { formatShortAmount, formatWholeAmount } from "../values/money";

const LARGE = 1_000_000;
const MINOR = 100;

export interface Format {
  full: (value: number) => string;
  short: (value: number) => string;
}

/** The money field that the measure sums. */
function moneyOf(model: Model, measure: Measure): Field | undefined {
  const field = measure.field === null ? undefined : fieldOf(model, measure.field);
  return field?.kind === "money" ? field : undefined;
}

export function formatOf(model: Model, measure: Measure): Format {
  if (measure.fn === "share") {
    return { full: (value) => percent(value, false), short: (value) => percent(value, false) };
  }
  const money = moneyOf(model, measure);
  return money
    ? { full: (value) => formatWholeAmount(value, money.currency), short: (value) => formatShortAmount(value, money.currency) }
    : { full: (value) => number(Math.round(value * 100) / 100), short: compact };
}

/** The large figure of a tile: in full if it is short, or else abbreviated. */
export function headline(value: number | null, model: Model, measure: Measure): string {
  if (value === null) {
    return "–";
  }
  const { full, short } = formatOf(model, measure);
  return Math.abs(value / (moneyOf(model, measure) ? MINOR : 1)) >= LARGE ? short(value) : full(value);
}
