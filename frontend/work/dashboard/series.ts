// Figures over time: aggregated by the service, or else counted here from the number of records of each day.
import { type Field, type Measure, type Model, run } from "../api";
import { fieldOf, may } from "../models";
import type { Condition } from "../values/operators";
import { before, type Period, startOf, startsOf } from "./periods";

export interface Point {
  at: string;
  value: number | null;
}

export interface SeriesGroup {
  key: unknown;
  total: number | null;
  points: Point[];
}

export interface Series {
  points: Point[];
  total: number | null;
  groups: SeriesGroup[];
  previous: { points: Point[]; total: number | null };
  names: Record<string, unknown>;
}

/** The date field of a measure. */
export function dateOf(model: Model, measure: Measure): Field | undefined {
  const named = measure.date ? fieldOf(model, measure.date) : model.fields.find((each) => each.kind === "date");
  return named && named.kind === "date" && !named.masked ? named : undefined;
}

/** The measures of a model that this person may see. */
export function measuresOf(model: Model): Measure[] {
  const canAdd = may(model, "series");
  return (model.measures ?? []).filter((each) => {
    const field = each.field === null ? undefined : fieldOf(model, each.field);
    const isKnown = each.fn === "count" ? canAdd || may(model, "count_by") : canAdd && field !== undefined && !field.masked;
    return isKnown && dateOf(model, each) !== undefined;
  });
}

interface Wanted {
  model: Model;
  measure: Measure;
  period: Period;
  filter: readonly Condition[];
  by?: Field | undefined;
}

export async function loadSeries({ model, measure, period, filter, by }: Wanted, signal: AbortSignal): Promise<Series> {
  const date = dateOf(model, measure)?.name ?? "";
  if (may(model, "series")) {
    const field = measure.fn === "count" ? {} : { field: measure.field };
    const input = { fn: measure.fn, ...field, date, ...period, filter, ...(by ? { by: by.name } : {}) };
    return (await run<Series>(model.name, "series", input, signal)).value;
  }
  const counted = await run<{ value: string | null; count: number }[]>(model.name, "count_by", { field: date, filter }, signal);
  const pointsOf = (wanted: Period): Point[] => {
    const sums = new Map(startsOf(wanted).map((day) => [day, 0]));
    for (const { value, count } of counted.value) {
      const start = value !== null && value >= wanted.from && value <= wanted.to ? startOf(value, wanted.step) : "";
      if (sums.has(start)) {
        sums.set(start, (sums.get(start) ?? 0) + count);
      }
    }
    return [...sums].map(([at, value]) => ({ at, value }));
  };
  const total = (points: readonly Point[]) => points.reduce((sum, each) => sum + (each.value ?? 0), 0);
  const [points, earlier] = [pointsOf(period), pointsOf(before(period))];
  return { points, total: total(points), groups: [], previous: { points: earlier, total: total(earlier) }, names: {} };
}
