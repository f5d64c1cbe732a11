// Figures over time: aggregated by the service, or else counted here from the number of records of each day.
import { type Field, type Measure, type Model, run } from "../api";
import { fieldOf, may } from "../models";
import type { Condition } from "../values/operators";
import { before, type Period, periodAhead, startOf, startsOf } from "./periods";

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
    const isKnown = each.fn === "share" ? canAdd : each.fn === "count" ? canAdd || may(model, "count_by") : canAdd && field !== undefined && !field.masked;
    return isKnown && dateOf(model, each) !== undefined;
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
    const [all, part] = await Promise.all([loadSeries({ ...request, measure: count }, signal), loadSeries({ ...request, measure: count, filter: [...filter, ...(measure.filter ?? [])] }, signal)]);
    return shareOf(part, all);
  }
  return loadValues({ ...request, ...scopeOf(measure, request.period, filter) }, signal);
}

/** The share of a count in another one, for each step and over the whole period. It has no groups. */
function shareOf(part: Series, all: Series): Series {
  const ratio = (one: number | null, whole: number | null | undefined) => (whole ? (one ?? 0) / whole : null);
  const ratios = (points: readonly Point[], wholes: readonly Point[]) => points.map(({ at, value }, index) => ({ at, value: ratio(value, wholes[index]?.value) }));
  return {
    points: ratios(part.points, all.points),
    total: ratio(part.total, all.total),
    groups: [],
    previous: { points: ratios(part.previous.points, all.previous.points), total: ratio(part.previous.total, all.previous.total) },
    names: {},
  };
}

async function loadValues({ model, measure, period, filter, by }: SeriesRequest, signal: AbortSignal): Promise<Series> {
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
