// Loads the data of the analytics page in batches: series with the preceding period, and breakdowns.
import { Problem } from "../../shared/problem";
import { api, type Schemas } from "../api";
import { METRICS, rangeBefore, type StatisticsRange } from "./statistics_range";

export type Stats = Schemas["Stats"];
export type StatsGroup = Stats["groups"][number];
type Metric = Stats["metric"];

export interface Statistics {
  /** Each metric in the period, and in the preceding period of the same length. */
  series: Readonly<Record<Metric, { now: Stats; before: Stats }>>;
  products: { now: readonly StatsGroup[]; before: ReadonlyMap<string, number> };
  platforms: readonly StatsGroup[];
}

/** A published version with its downloads in the period. */
export interface ReleaseDownloads {
  slug: string;
  title: string;
  version: string;
  downloads: number;
  publishedAt: string | undefined;
}

const SERIES = [...METRICS, "bytes"] as const;
const AT_ONCE = 40;
const MAX_RELEASES = 100;

/** Request several paths in one batch. @throws Problem if one of them fails. */
async function batch<Body>(paths: readonly string[], signal: AbortSignal): Promise<Body[]> {
  if (!paths.length) {
    return [];
  }
  const operations = paths.map((path) => ({ method: "GET" as const, path, body: null, headers: null }));
  const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, signal })).value;
  return results.map((result) => {
    if (result.status !== 200) {
      throw new Problem(result.status, result.body as Record<string, unknown>);
    }
    return result.body as unknown as Body;
  });
}

function pathOf(org: string, parameters: Record<string, string>): string {
  const query = Object.entries({ org, ...parameters }).filter(([, value]) => value);
  return `/org/stats?${new URLSearchParams(query)}`;
}

export async function fetchStatistics(org: string, range: StatisticsRange, signal: AbortSignal): Promise<Statistics> {
  const { from, to, step, product } = range;
  const [now, before] = [{ from, to, product }, { ...rangeBefore(range), product }];
  const answers = await batch<Stats>(
    [
      ...SERIES.flatMap((metric) => [pathOf(org, { ...now, metric, step }), pathOf(org, { ...before, metric, step })]),
      // Only the totals of groups are shown, so request months to keep the answers small.
      pathOf(org, { ...now, by: "product", step: "month" }),
      pathOf(org, { ...before, by: "product", step: "month" }),
      pathOf(org, { ...now, by: "platform", step: "month" }),
    ],
    signal,
  );
  const groups = (index: number) => answers[2 * SERIES.length + index]?.groups ?? [];
  const series = SERIES.map((metric, index) => [metric, { now: answers[2 * index], before: answers[2 * index + 1] }]);
  return {
    series: Object.fromEntries(series) as Statistics["series"],
    products: { now: groups(0), before: new Map(groups(1).map((group) => [group.key, group.total ?? 0])) },
    platforms: groups(2),
  };
}

/** The most downloaded versions of these products, in descending order. */
export async function fetchReleaseDownloads(
  org: string,
  { from, to }: StatisticsRange,
  products: readonly StatsGroup[],
  count: number,
  signal: AbortSignal,
): Promise<readonly ReleaseDownloads[]> {
  const productBatch = products.slice(0, AT_ONCE);
  const answers = await batch<Stats>(
    productBatch.map((entry) => pathOf(org, { from, to, product: entry.key, by: "release", step: "month" })),
    signal,
  );
  const topProducts = answers
    .flatMap(({ groups }, index) =>
      groups.map(({ key, total }) => ({ slug: productBatch[index]?.key ?? "", title: productBatch[index]?.label ?? "", version: key, downloads: total ?? 0 })),
    )
    .sort((a, b) => b.downloads - a.downloads)
    .slice(0, count);
  const slugs = [...new Set(topProducts.map((topProduct) => topProduct.slug))];
  const lists = await batch<{ items: readonly Schemas["Release"][] }>(
    slugs.map((slug) => `/products/${slug}/releases?limit=${MAX_RELEASES}`),
    signal,
  );
  const dates = new Map(lists.flatMap(({ items }, index) => items.map((item) => [`${slugs[index]} ${item.version}`, item.published_at ?? undefined] as const)));
  return topProducts.map((product) => ({ ...product, publishedAt: dates.get(`${product.slug} ${product.version}`) }));
}
