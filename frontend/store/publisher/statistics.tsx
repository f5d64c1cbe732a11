// The analytics of an organisation: four figures, a chart of the chosen figure with the preceding period, and tables.
import { useRequest } from "../../shared/request";
import { Chart, compact, Legend, Sparkline } from "../../shared/chart";
import type { ChartMarker } from "../../shared/chart_markers";
import { Heading } from "../../shared/components/heading";
import { RequestResult } from "../../shared/components/states";
import { setQuery } from "../../shared/router";
import { date, dateLanguage, number, plural, shortDate, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { fetchStatistics, type Statistics as Numbers, type Stats } from "./statistics_data";
import { currentRange, METRICS, StatisticsControls, STEPS, type StatisticsRange } from "./statistics_range";
import { Change, StatisticsTables } from "./statistics_tables";
import "./statistics.css";

const t = translator("publisher");

const CHART_PX = 290;
const MAX_FULL_TICK = 100_000;
const MAX_PRODUCTS = 100;
const MAX_TITLE = 16;
type Product = Schemas["Product"];

export function Statistics({ org }: { org: string }) {
  const range = currentRange();
  const products = useRequest(async (signal) => (await api.get("/api/v1/products", { query: { org, limit: MAX_PRODUCTS, sort: "title" }, signal })).value.items, [org]);
  const loadedProducts: readonly Product[] = products.state === "loaded" ? products.value : [];
  const request = useRequest((signal) => fetchStatistics(org, range, signal), [org, range.from, range.to, range.step, range.product], { keepsPrevious: true });
  return (
    <>
      <Heading title={t("usage")}>
        <p class="quiet stats-lead">{t("stats.compared", { n: range.days })}</p>
        <StatisticsControls org={org} range={range} products={loadedProducts} />
      </Heading>
      <RequestResult request={request}>
        {(value) => (
          <>
            <StatisticsPanels numbers={value} range={range} />
            <SeriesPanel numbers={value} range={range} products={loadedProducts} />
            <StatisticsTables org={org} numbers={value} range={range} products={loadedProducts} />
          </>
        )}
      </RequestResult>
    </>
  );
}

function StatisticsPanels({ numbers, range }: { numbers: Numbers; range: StatisticsRange }) {
  return (
    <ul class="kpis" aria-label={t("stats.figures")}>
      {METRICS.map((metric) => {
        const { now } = numbers.series[metric];
        return (
          <li key={metric}>
            <button type="button" class="panel-box kpi" aria-pressed={metric === range.metric} onClick={() => setQuery({ metric })}>
              <span>{t(`stats.${metric}`)}</span>
              <b>
                {number(now.total)}
                <Change now={now.total} before={now.previous.total} days={range.days} />
              </b>
              <Sparkline values={now.points.map((point) => point.value)} />
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function SeriesPanel({ numbers, range, products }: { numbers: Numbers; range: StatisticsRange; products: readonly Product[] }) {
  const { metric, step } = range;
  const { now, before } = numbers.series[metric];
  const title = t(`stats.title.${metric}.${metric === "followers" ? "day" : step}` as "stats.title.downloads.day");
  const days = now.points.map((point) => point.at.slice(0, 10));
  const series = [
    // Draw the preceding period first, below the current line.
    { name: t("stats.days.before", { n: range.days }), values: days.map((_, index) => before.points[index]?.value ?? null), hue: 6, isDashed: true },
    { name: t(`stats.${metric}`), values: now.points.map((point) => point.value), hue: 1, hasArea: true },
  ];
  return (
    <section class="panel-box chart-panel" aria-labelledby="per-step">
      <div class="panel-head">
        <h2 id="per-step">{title}</h2>
        <Legend series={[{ name: t("stats.period"), hue: 1 }, { name: t("stats.period.before", { n: range.days }), hue: 6 }]} />
        <div class="segments" role="group" aria-label={t("stats.step")}>
          {STEPS.map((stepName) => (
            <button key={stepName} type="button" aria-pressed={stepName === step} onClick={() => setQuery({ step: stepName })}>
              {t(`stats.step.${stepName}`)}
            </button>
          ))}
        </div>
      </div>
      <Chart title={title} kind="line" height={CHART_PX} days={days} dayLabel={(day) => dayLabel(day, range)} series={series} formatTick={tickOf} markers={markersOf(now, days, products, range)} countLabel={(count) => plural(count, t("stats.releases.one"), t("stats.releases"))} />
    </section>
  );
}

/** A number beside the axis, in full if it fits. */
function tickOf(value: number): string {
  return value < MAX_FULL_TICK ? number(value) : compact(value);
}

function dayLabel(day: string, { step }: StatisticsRange): string {
  const shape = step === "month" ? ({ month: "long", year: "numeric" } as const) : ({ weekday: "short", day: "numeric", month: "short", year: "numeric" } as const);
  const dateText = new Intl.DateTimeFormat(dateLanguage, { ...shape, timeZone: "UTC" }).format(new Date(day));
  return step === "week" ? t("stats.week.of", { day: shortDate(day) }) : dateText;
}

/** A title shortened to fit a marker. */
function shortTitle(title: string): string {
  return title.length > MAX_TITLE ? `${title.slice(0, MAX_TITLE - 1).trimEnd()}…` : title;
}

/** The releases of the period, each at the point of the chart that contains its day. Names include the product,
 *  unless the statistics are about one product. */
function markersOf({ markers }: Stats, days: readonly string[], products: readonly Product[], range: StatisticsRange): ChartMarker[] {
  return markers.map(({ at, product, version }) => {
    const title = products.find((entry) => entry.slug === product)?.title ?? product;
    return {
      index: Math.max(0, days.findLastIndex((day) => day <= at.slice(0, 10))),
      label: range.product ? version : `${shortTitle(title)} ${version}`,
      title: `${title} ${version}, ${date(at)}`,
      href: `/publisher/products/${product}/releases/${encodeURIComponent(version)}`,
    };
  });
}

