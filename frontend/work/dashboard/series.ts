// Figures over time: aggregated by the service, or else counted here from the number of records of each day.
import { type Field, type Measure, type Model, run } from "../api";
import { fieldOf, mayRun } from "../models";
import type { Condition } from "../values/operators";
import { periodBefore, type Period, periodAhead, startOf, startsOf } from "./periods";

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
  const dateField = measure.date ? fieldOf(model, measure.date) : model.fields.find((field) => field.kind === "date");
  return dateField && dateField.kind === "date" && !dateField.masked ? dateField : undefined;
}

/** The measures of a model that this person may see. */
export function measuresOf(model: Model): Measure[] {
  const canAdd = mayRun(model, "series");
  return (model.measures ?? []).filter((measure) => {
    const field = measure.field === null ? undefined : fieldOf(model, measure.field);
    const isKnown = measure.fn === "share" ? canAdd : measure.fn === "count" ? canAdd || mayRun(model, "count_by") : canAdd && field !== undefined && !field.masked;
    return isKnown && dateOf(model, measure) !== undefined;
  });
}

/** The records and the days that a measure covers, for the period and the filter of a dashboard. */
export function scopeOf(measure: Measure, period: Period, filter: readonly Condition[]): { period: Period; filter: Condition[] } {
  return { period: measure.ahead ? periodAhead(period) : period, filter: [...filter, ...((measure.fn === "share" ? measure.among : measure.filter) ?? [])] };
}

interface SeriesRequest {
  model: Model;
  measure: Measure;
  period: Period;
  filter: readonly Condition[];
  by?: Field | undefined;
}

export async function loadSeries(request: SeriesRequest, signal: AbortSignal): Promise<Series> {
  const { measure, filter } = request;
  if (measure.fn === "share") {
    const count: Measure = { ...measure, fn: "count", filter: measure.among ?? [] };
    const [totalSeries, partSeries] = await Promise.all([loadSeries({ ...request, measure: count }, signal), loadSeries({ ...request, measure: count, filter: [...filter, ...(measure.filter ?? [])] }, signal)]);
    return shareOf(partSeries, totalSeries);
  }
  return loadValues({ ...request, ...scopeOf(measure, request.period, filter) }, signal);
}

/** The share of one count in another count, for each step and over the whole period. A share has no groups. */
function shareOf(partSeries: Series, totalSeries: Series): Series {
  const ratio = (partValue: number | null, wholeValue: number | null | undefined) => (wholeValue ? (partValue ?? 0) / wholeValue : null);
  const ratios = (points: readonly Point[], wholes: readonly Point[]) => points.map(({ at, value }, index) => ({ at, value: ratio(value, wholes[index]?.value) }));
  return {
    points: ratios(partSeries.points, totalSeries.points),
    total: ratio(partSeries.total, totalSeries.total),
    groups: [],
    previous: { points: ratios(partSeries.previous.points, totalSeries.previous.points), total: ratio(partSeries.previous.total, totalSeries.previous.total) },
    names: {},
  };
}

async function loadValues({ model, measure, period, filter, by }: SeriesRequest, signal: AbortSignal): Promise<Series> {
  const date = dateOf(model, measure)?.name ?? "";
  if (mayRun(model, "series")) {
    const field = measure.fn === "count" ? {} : { field: measure.field };
    const input = { fn: measure.fn, ...field, date, ...period, filter, ...(by ? { by: by.name } : {}) };
    return (await run<Series>(model.name, "series", input, signal)).value;
  }
  const countsByDay = await run<{ value: string | null; count: number }[]>(model.name, "count_by", { field: date, filter }, signal);
  const pointsOf = (wantedPeriod: Period): Point[] => {
    const sums = new Map(startsOf(wantedPeriod).map((day) => [day, 0]));
    for (const { value, count } of countsByDay.value) {
      const start = value !== null && value >= wantedPeriod.from && value <= wantedPeriod.to ? startOf(value, wantedPeriod.step) : "";
      if (sums.has(start)) {
        sums.set(start, (sums.get(start) ?? 0) + count);
      }
    }
    return [...sums].map(([at, value]) => ({ at, value }));
  };
  const total = (points: readonly Point[]) => points.reduce((sum, point) => sum + (point.value ?? 0), 0);
  const [points, earlierPoints] = [pointsOf(period), pointsOf(periodBefore(period))];
  return { points, total: total(points), groups: [], previous: { points: earlierPoints, total: total(earlierPoints) }, names: {} };
}
