// The last 90 days of an organisation: four figures with what they were before, and the downloads of each day.
import { useRequest } from "../../shared/request";
import { Chart, Spark } from "../../shared/chart";
import { RequestResult } from "../../shared/components/states";
import { number, translator, language } from "../../shared/i18n";
import { api, type Schemas } from "../api";

const t = translator("publisher");

const DAYS = 90;
const DAY_MS = 86_400_000;
const METRICS = ["downloads", "redemptions", "updates", "followers"] as const;

export function Statistics({ org }: { org: string }) {
  const found = useRequest(
    async (signal) => {
      const day = (before: number) => new Date(Date.now() - before * DAY_MS).toISOString().slice(0, 10);
      const query = { org, from: day(DAYS), to: day(1) };
      return await Promise.all(METRICS.map(async (metric) => (await api.get("/api/v1/org/stats", { query: { ...query, metric }, signal })).value));
    },
    [org],
  );
  return (
    <RequestResult of={found}>
      {(all) => (
        <>
          <ul class="kpis">
            {all.map((each) => (
              <Figure key={each.metric} stats={each} />
            ))}
          </ul>
          {all.slice(0, 1).map((each) => (
            <section key={each.metric} class="panel-box chart-panel" aria-labelledby="per-day">
              <h2 id="per-day">{t("stats.per.day")}</h2>
              <Chart
                title={t("stats.per.day")}
                kind="line"
                days={each.points.map((point) => point.at.slice(0, 10))}
                series={[{ name: t("stats.downloads"), values: each.points.map((point) => point.value), hue: 1, hasArea: true }]}
              />
            </section>
          ))}
        </>
      )}
    </RequestResult>
  );
}

function Figure({ stats: { metric, total, previous, points } }: { stats: Schemas["Stats"] }) {
  const change = previous.total ? total / previous.total - 1 : null;
  const percent = new Intl.NumberFormat(language, { style: "percent", signDisplay: "exceptZero", maximumFractionDigits: 0 });
  return (
    <li class="panel-box kpi">
      <span>{t(`stats.${metric as (typeof METRICS)[number]}`)}</span>
      <b>
        {number(total)}
        {change !== null && (
          <small class={change < 0 ? "down" : "up"} title={t("stats.before", { n: number(previous.total) })}>
            {percent.format(change)}
          </small>
        )}
      </b>
      <Spark values={points.map((each) => each.value)} />
    </li>
  );
}
