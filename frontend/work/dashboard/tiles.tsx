// The tiles of a dashboard: a figure with its change, a chart over time, shares by value, and a list of top records.
import { useState } from "preact/hooks";
import { Chip } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { Chart, type ChartSeries, Legend, Sparkline } from "../../shared/chart";
import { ChartTable, TableSwitch } from "../../shared/chart_table";
import { date, number, percent, shortDate, translator } from "../../shared/i18n";
import { useRequest } from "../../shared/request";
import { go } from "../../shared/router";
import { type Field, type Measure, type Meta, type Model, type Row, run } from "../api";
import { isOpen } from "../home/own_records";
import { addressOf, fieldOf, mayRun, modelOf, nounOf, titleOf, workflowField } from "../models";
import { isNarrow } from "../screen_size";
import { referencedRecord } from "../referenced_records";
import { formatShortAmount, formatWholeAmount } from "../values/money";
import { optionLabel, optionTone, StateChip } from "../values/options";
import type { Condition } from "../values/operators";
import { Value } from "../values/value";
import { Widget } from "../widgets/widget";
import { formatOf, headline } from "./format";
import { addDays, nextStart, type Period } from "./periods";
import { dateOf, loadSeries, scopeOf, type Series } from "./series";
import { measureName } from "./tile";

const t = translator("dashboard");

export interface TileProps {
  meta: Meta;
  model: Model;
  period: Period;
  filter: readonly Condition[];
  /** The name that the dashboard gives the tile, instead of the tile's own title. */
  title?: string | undefined;
}

export function listAddress(model: Model, filter: readonly Condition[], order = ""): string {
  return `/models/${model.name}?filter=${encodeURIComponent(JSON.stringify(filter))}${order && `&order=${order}`}`;
}

/** Opens the list of the records in a step of a chart. */
function opener({ model, period: dashboardPeriod, filter: dashboardFilter }: TileProps, measure: Measure, days: readonly string[]) {
  const field = dateOf(model, measure);
  const { period, filter } = scopeOf(measure, dashboardPeriod, dashboardFilter);
  return (index: number) => {
    const start = days[index];
    if (field && start) {
      const firstDay = start < period.from ? period.from : start;
      const end = addDays(nextStart(start, period.step), -1);
      const lastDay = end > period.to ? period.to : end;
      const conditions: Condition[] = [...filter, { field: field.name, op: "gte", value: firstDay }, { field: field.name, op: "lte", value: lastDay }];
      go(listAddress(model, conditions));
    }
  };
}

export function Kpi({ model, title, period, measure, series }: TileProps & { measure: Measure; series: Series }) {
  const name = title ?? measureName(measure);
  return (
    <section class="kpi" aria-label={name}>
      <p class="tile-label">{name}</p>
      <p class="kpi-value">
        {headline(series.total, model, measure)} {measure.ahead ? <LastDay {...{ period, measure }} /> : <Change {...{ measure, series }} />}
      </p>
      <Sparkline values={series.points.map((point) => point.value)} />
    </section>
  );
}

/** The last day of a measure that covers future days. Such a measure has no earlier period to compare with. */
function LastDay({ period, measure }: { period: Period; measure: Measure }) {
  return <span class="change">{t("until", { day: shortDate(scopeOf(measure, period, []).period.to) })}</span>;
}

const LARGE_CHANGE = 9.99;

function Change({ measure, series: { total, previous } }: { measure: Measure; series: Series }) {
  if (total === null || !previous.total) {
    return null;
  }
  const isShare = measure.fn === "share";
  const change = isShare ? total - previous.total : (total - previous.total) / Math.abs(previous.total);
  const isGood = change === 0 ? undefined : change > 0 === (measure.better === "up");
  return (
    <span class={["change", isGood !== undefined && (isGood ? "good" : "bad"), change > 0 ? "up" : "down"].filter(Boolean).join(" ")} title={t("change.of", { value: isShare ? t("points", { n: signedPoints(change) }) : percent(change) })}>
      {change !== 0 && <Icon name={change > 0 ? "arrow-up" : "arrow-down"} size="s" />}
      {isShare ? t("points", { n: signedPoints(change) }) : Math.abs(change) > LARGE_CHANGE ? `> ${percent(Math.sign(change) * LARGE_CHANGE)}` : percent(change)}
      <span class="hidden-text"> {t("change")}</span>
    </span>
  );
}

/** The difference of two shares in percentage points: +2.1. */
function signedPoints(difference: number): string {
  const points = Math.round(difference * 1000) / 10;
  return `${points > 0 ? "+" : ""}${number(points)}`;
}

/** A measure over time, with the preceding period as a dashed line. */
export function OverTime(props: TileProps & { measure: Measure; series: Series }) {
  const { model, measure, series, period } = props;
  const [isTable, setTable] = useState(false);
  const format = formatOf(model, measure);
  const name = measureName(measure);
  const title = props.title ?? t(`per.${period.step}`, { name });
  const days = series.points.map((point) => point.at);
  const lines: ChartSeries[] = [
    { name, values: series.points.map((point) => point.value), hue: 1, hasArea: true },
    { name: t("previous"), values: days.map((_, index) => series.previous.points[index]?.value ?? null), hue: 6, isDashed: true },
  ];
  const chart = { title, days, series: lines, kind: "line", height: isNarrow.value ? 210 : 264, format: format.full, formatTick: format.short, dayLabel: labelOf(period) } as const;
  return (
    <Widget title={title} beside={<Legend series={lines} />} end={<span class="end"><TableSwitch {...{ title, isTable }} onChange={setTable} /></span>}>
      {isTable ? <ChartTable {...chart} /> : <div class="widget-chart"><Chart {...chart} onOpen={opener(props, measure, days)} /></div>}
    </Widget>
  );
}

function labelOf(period: Period) {
  return (day: string) => (period.step === "week" ? t("week.of", { day: shortDate(day) }) : date(day));
}

const MAX_PARTS = 5;

/** The number of records in each step, by the values of a field. */
export function StackedBars(props: TileProps & { measure: Measure; by: Field }) {
  const { model, measure, by, period, filter } = props;
  const [isTable, setTable] = useState(false);
  const seriesRequest = useRequest((signal) => loadSeries({ ...props, by }, signal), [model.name, by.name, period.from, period.to, JSON.stringify(filter)], { keepsPrevious: true });
  const title = props.title ?? t("parts", { name: measureName(measure), field: nounOf(by.label) });
  return (
    <Widget title={title} end={<span class="end"><TableSwitch {...{ title, isTable }} onChange={setTable} /></span>}>
      <RequestResult request={seriesRequest}>
        {(series) => {
          const days = series.points.map((point) => point.at);
          const namedGroups = series.groups.filter((group) => group.key !== null);
          const shownGroups = namedGroups.slice(0, MAX_PARTS);
          const bars: ChartSeries[] = shownGroups.map((shownGroup, index) => ({ name: nameOf(by, shownGroup.key), values: shownGroup.points.map((point) => point.value), hue: index + 1 }));
          const otherGroups = series.groups.filter((group) => !shownGroups.includes(group));
          if (otherGroups.length > 0) {
            bars.push({ name: t(namedGroups.length > MAX_PARTS ? "others" : "none"), values: days.map((_, index) => otherGroups.reduce((sum, otherGroup) => sum + (otherGroup.points[index]?.value ?? 0), 0)), hue: 6 });
          }
          const chart = { title, days, series: bars, kind: "bars", height: isNarrow.value ? 216 : 246, dayLabel: labelOf(period) } as const;
          return isTable ? (
            <ChartTable {...chart} />
          ) : (
            <div class="widget-chart">
              <Legend series={bars} />
              <Chart {...chart} onOpen={opener(props, measure, days)} />
            </div>
          );
        }}
      </RequestResult>
    </Widget>
  );
}

function nameOf(field: Field, value: unknown): string {
  return optionLabel(field, String(value));
}

interface StateCounts {
  counts: { value: unknown; count: number }[];
  /** The amounts of the records in each state. Null if they have no amount, or if this person may not add it up. */
  amounts: Record<string, number | null> | null;
}

async function loadStates(model: Model, state: Field, money: Field | undefined, filter: readonly Condition[], signal: AbortSignal): Promise<StateCounts> {
  const countsRequest = run<StateCounts["counts"]>(model.name, "count_by", { field: state.name, filter }, signal);
  const amountRequests = (money ? (state.options ?? []) : []).map(async (value) => {
    const input = { filter: [...filter, { field: state.name, op: "eq", value }], sums: [money?.name], limit: 1 };
    const { sums } = (await run<{ sums: Record<string, { sum: number | null }> }>(model.name, "search", input, signal)).value;
    return [value, sums[money?.name ?? ""]?.sum ?? null] as const;
  });
  // All are awaited together, so that each failure is handled.
  const [counts, ...amounts] = await Promise.all([countsRequest, ...amountRequests]);
  return { counts: counts.value, amounts: money ? Object.fromEntries(amounts) : null };
}

/** The present number of records in each state, with their amounts or else their share. */
export function States({ model, filter, title, state }: TileProps & { state: Field }) {
  const money = mayRun(model, "search") ? model.fields.find((field) => field.kind === "money" && !field.masked) : undefined;
  const statesRequest = useRequest((signal) => loadStates(model, state, money, filter, signal), [model.name, JSON.stringify(filter)], { keepsPrevious: true });
  return (
    <Widget title={title ?? t("states", { models: model.plural, field: nounOf(state.label) })}>
      <RequestResult request={statesRequest}>
        {({ counts, amounts }) => {
          const countOf = (value: string) => counts.find((count) => count.value === value)?.count ?? 0;
          const largest = Math.max(1, ...counts.map((count) => count.count));
          const total = counts.reduce((sum, count) => sum + count.count, 0);
          const endedPart = endedShare(state, countOf);
          return (
            <>
              <ul class="states">
              {(state.options ?? []).map((value) => (
                <li key={value}>
                  <StateChip field={state} value={value} />
                  <PartBar part={countOf(value) / largest} tone={optionTone(state, value) ?? "grey"} />
                  <a class="number" href={listAddress(model, [...filter, { field: state.name, op: "eq", value }])}>
                    {number(countOf(value))}
                  </a>
                  <span class="number quiet">{amounts ? formatShortAmount(amounts[value] ?? 0, money?.currency) : total > 0 && percent(countOf(value) / total, false)}</span>
                </li>
              ))}
            </ul>
            {endedPart && <p class="states-note">{t("ended", { share: percent(endedPart.share, false), models: nounOf(model.plural), state: nounOf(optionLabel(state, endedPart.value)) })}</p>}
            </>
          );
        }}
      </RequestResult>
    </Widget>
  );
}

/** The share of successful records among those that ended, if the field has one good and one bad end state. */
function endedShare(state: Field, countOf: (value: string) => number): { value: string; share: number } | null {
  const optionsWithTone = (tone: string) => (state.options ?? []).filter((option) => optionTone(state, option) === tone);
  const [[goodOption, ...otherGoodOptions], badOptions] = [optionsWithTone("good"), optionsWithTone("bad")];
  const endedCount = [goodOption ?? "", ...badOptions].reduce((sum, badOption) => sum + countOf(badOption), 0);
  return goodOption && otherGoodOptions.length === 0 && badOptions.length > 0 && endedCount > 0 ? { value: goodOption, share: countOf(goodOption) / endedCount } : null;
}

/** A bar that shows a share. */
export function PartBar({ part, tone = "" }: { part: number; tone?: string }) {
  return (
    <svg class={`part-bar ${tone}`} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" width="100" height="10" rx="1" />
      <rect class="part" width={Math.max(part > 0 ? 1 : 0, part * 100)} height="10" rx="1" />
    </svg>
  );
}

const ROWS = 6;

/** The title of the record to which the field refers; empty while it is loading, or if this person may not see it. */
function nameOfReferenced(meta: Meta, field: Field, id: string): string {
  const model = modelOf(meta, field.ref ?? "");
  const record = model ? referencedRecord(model, id).value : null;
  return model && record ? titleOf(model, record) : "";
}

/** The open records with the largest amounts, or those that are due next. */
export function LargestRecords({ meta, model, filter, ...listProps }: TileProps) {
  const money = model.fields.find((field) => field.kind === "money" && !field.masked);
  const dueDateField = model.fields.find((field) => field.kind === "date" && !field.masked);
  const state = workflowField(model);
  const conditions = [...filter, ...isOpen(state)];
  const orderField = money ?? dueDateField;
  const input = { filter: conditions, order: orderField ? [{ field: orderField.name, dir: money ? "desc" : "asc" }] : [], limit: ROWS };
  const recordsRequest = useRequest(async (signal) => (await run<Row[]>(model.name, "list", input, signal)).value, [model.name, JSON.stringify(filter)], { keepsPrevious: true });
  const title = listProps.title ?? t(money ? "largest" : "next", { models: nounOf(model.plural) });
  // For records with amounts, the party is shorter and more informative than the title.
  const party = money && model.fields.find((field) => field.ref && modelOf(meta, field.ref)?.module !== "base" && !field.masked && !field.is_part);
  const nameOf = (row: Row) => (party && row[party.name] && nameOfReferenced(meta, party, String(row[party.name]))) || titleOf(model, row);
  const name = party ?? fieldOf(model, model.shown_as);
  return (
    <Widget title={title} link={{ href: listAddress(model, conditions, orderField ? `${money ? "-" : ""}${orderField.name}` : ""), label: model.plural }}>
      <RequestResult request={recordsRequest}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="widget-empty">{t("nothing")}</p>
          ) : (
            <div class="mini-wrap" tabIndex={0} role="group" aria-label={title}>
              <table class="mini">
                <thead>
                  <tr>
                    <th scope="col">{name?.label ?? model.label}</th>
                    {orderField && (
                      <th scope="col" class="number">
                        {orderField.label}
                      </th>
                    )}
                    {state && <th scope="col">{state.label}</th>}
                  </tr>
                </thead>
                <tbody>
                  {rows.map((row) => (
                    <tr key={row.id}>
                      <th scope="row" class="cut" title={titleOf(model, row)}>
                        {mayRun(model, "get") ? <a href={addressOf(model.name, row.id)}>{nameOf(row)}</a> : nameOf(row)}
                      </th>
                      {orderField && <td class="number">{money ? typeof row[orderField.name] === "number" && formatWholeAmount(Number(row[orderField.name]), orderField.currency) : <Value {...{ meta }} field={orderField} value={row[orderField.name]} isCell />}</td>}
                      {state && <td>{row[state.name] ? <StateChip field={state} value={String(row[state.name])} /> : <Chip>{t("none")}</Chip>}</td>}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </RequestResult>
    </Widget>
  );
}
