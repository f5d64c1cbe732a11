// How the values of a measure are written: amounts of money are whole minor units.
import { compact } from "../../shared/chart";
import { number } from "../../shared/i18n";
import type { Measure, Model } from "../api";
import { fieldOf } from "../models";

const LARGE = 1_000_000;
const MINOR = 100;

export interface Format {
  full: (value: number) => string;
  short: (value: number) => string;
}

export function formatOf(model: Model, measure: Measure): Format {
  const isMoney = measure.field !== null && fieldOf(model, measure.field)?.kind === "money";
  const unit = isMoney ? MINOR : 1;
  const whole = (value: number) => number(isMoney ? Math.round(value / unit) : Math.round(value * 100) / 100);
  return { full: whole, short: (value) => compact(value / unit) };
}

/** A figure in large: in full while it is short. */
export function headline(value: number | null, format: Format, model: Model, measure: Measure): string {
  if (value === null) {
    return "–";
  }
  const isMoney = measure.field !== null && fieldOf(model, measure.field)?.kind === "money";
  return Math.abs(value / (isMoney ? MINOR : 1)) >= LARGE ? format.short(value) : format.full(value);
}
