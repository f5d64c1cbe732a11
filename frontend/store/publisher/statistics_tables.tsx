// The tables of the analytics page: downloads by product, release and platform; batches of codes; transferred bytes.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Chart } from "../../shared/chart";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { date, number, percent, shortDate, size, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { CoverImage } from "../card";
import { PLATFORMS, type Platform } from "../platform";
import { PlatformMark } from "../platform_marks";
import { Bar } from "./share_bar";
import { fetchReleaseDownloads, type Statistics } from "./statistics_data";
import type { StatisticsRange } from "./statistics_range";

const tStore = translator("store");
const t = translator("publisher");

const MAX_SHOWN = 5;
const MAX_PRODUCTS = 20;
const BYTES_PX = 190;
type Product = Schemas["Product"];

interface Props {
  org: string;
  numbers: Statistics;
  range: StatisticsRange;
  products: readonly Product[];
}

export function StatisticsTables(props: Props) {
  return (
    <div class="stats-tables">
      <ByProduct {...props} />
      <ByRelease {...props} />
      <ByPlatform {...props} />
      <ByBatch org={props.org} />
      <BytesServed {...props} />
    </div>
  );
}

function Panel({ id, title, note, isWide = false, children }: { id: string; title: string; note?: string; isWide?: boolean; children: ComponentChildren }) {
  return (
    <section class={isWide ? "panel-box stats-panel wide" : "panel-box stats-panel"} aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {note && <p class="quiet">{note}</p>}
      </div>
      {children}
    </section>
  );
}

function ByProduct({ numbers, range, products }: Props) {
  const [isWhole, setWhole] = useState(false);
  const topProducts = numbers.products.now.slice(0, MAX_PRODUCTS);
  const rows = isWhole ? topProducts : topProducts.slice(0, MAX_SHOWN);
  const largestTotal = rows[0]?.total || 1;
  const total = numbers.series.downloads.now.total || 1;
  return (
    <Panel id="by-product" title={t("stats.by.product")} note={t("stats.share.all")} isWide>
      {rows.length ? (
        <table class="table stats-table stats-products">
          <thead>
            <tr>
              <th scope="col">{t("stats.product")}</th>
              <th scope="col" class="wide-only">
                {t("newest")}
              </th>
              <th scope="col" class="number">
                {t("stats.downloads")}
              </th>
              <th scope="col" class="wide-only" colSpan={2}>
                {t("stats.share")}
              </th>
              <th scope="col" class="number">
                {t("stats.change")}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ key, label, total: value }) => (
              <tr key={key}>
                <th scope="row">
                  <a href={`/publisher/products/${key}`} class="stats-product">
                    <CoverImage product={products.find((product) => product.slug === key) ?? { slug: key }} sizes="44px" />
                    {label}
                  </a>
                </th>
                <td class="wide-only quiet">{products.find((product) => product.slug === key)?.latest?.version}</td>
                <td class="number">{number(value ?? 0)}</td>
                <td class="wide-only stats-bar">
                  <Bar share={(value ?? 0) / largestTotal} />
                </td>
                <td class="number wide-only quiet">{percent((value ?? 0) / total, false)}</td>
                <td class="number">
                  <Change now={value ?? 0} before={numbers.products.before.get(key) ?? 0} days={range.days} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="quiet stats-none">{t("stats.none")}</p>
      )}
      {topProducts.length > MAX_SHOWN && (
        <button type="button" class="button plain stats-more" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? t("stats.fewer") : t("stats.all", { n: topProducts.length })}
        </button>
      )}
    </Panel>
  );
}

/** The change since the preceding period: "New" if the preceding value is 0, a dash if both values are 0. */
export function Change({ now, before, days }: { now: number; before: number; days: number }) {
  const title = t("stats.before", { n: number(before), days });
  if (!before) {
    return (
      <small class="quiet" title={title}>
        {now ? t("stats.new") : "–"}
      </small>
    );
  }
  const change = now / before - 1;
  return (
    <small class={change < 0 ? "down" : change > 0 ? "up" : "quiet"} title={title}>
      {change !== 0 && <Icon name={change < 0 ? "arrow-down-right" : "arrow-up-right"} size="s" />}
      {percent(change)}
    </small>
  );
}

interface Row {
  key: string;
  name: ComponentChildren;
  detail?: string;
  value: number | null;
  share: number;
  hue?: number;
  note?: string;
}

/** Rows with a name, a bar and a number. The headings are only for screen readers. */
function Bars({ label, heads, rows }: { label: string; heads: readonly string[]; rows: readonly Row[] }) {
  const hasDetail = rows.some((row) => row.detail);
  const hasNote = rows.some((row) => row.note);
  return rows.length ? (
    <table class="table stats-table" aria-label={label}>
      <thead class="hidden-text">
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.key}>
            <th scope="row">{row.name}</th>
            {hasDetail && <td class="quiet wide-only">{row.detail}</td>}
            <td class={row.hue ? `stats-bar hue${row.hue}` : "stats-bar"}>
              <Bar share={row.share} />
            </td>
            <td class="number">{row.value === null ? t("stats.under.five") : number(row.value)}</td>
            {hasNote && <td class="number quiet">{row.note}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  ) : (
    <p class="quiet stats-none">{t("stats.none")}</p>
  );
}

function ByRelease({ org, numbers, range }: Props) {
  const groups = numbers.products.now;
  const request = useRequest(
    (signal) => fetchReleaseDownloads(org, range, groups, MAX_SHOWN, signal),
    [org, range.from, range.to, range.product, groups],
    { keepsPrevious: true },
  );
  return (
    <Panel id="by-release" title={t("stats.by.release")}>
      <RequestResult request={request}>
        {(shownRows) => {
          const rows = shownRows;
          return (
            <Bars
              label={t("stats.by.release")}
              heads={[t("version"), t("release.published"), t("stats.share"), t("stats.downloads")]}
              rows={rows.map(({ slug, title, version, downloads, publishedAt }) => ({
                key: `${slug} ${version}`,
                name: <a href={`/publisher/products/${slug}/releases/${encodeURIComponent(version)}`}>{`${title} ${version}`}</a>,
                detail: publishedAt ? shortDate(publishedAt.slice(0, 10)) : t("stats.unknown"),
                value: downloads,
                share: downloads / (rows[0]?.downloads || 1),
              }))}
            />
          );
        }}
      </RequestResult>
    </Panel>
  );
}

const LAST_HUE = 6;

function ByPlatform({ numbers }: Props) {
  const { total } = numbers.series.downloads.now;
  const rows = numbers.platforms;
  const largestTotal = Math.max(...rows.map((row) => row.total ?? 0), 1);
  return (
    <Panel id="by-platform" title={t("stats.by.platform")}>
      <Bars
        label={t("stats.by.platform")}
        heads={[tStore("platform"), t("stats.share"), t("stats.downloads"), t("stats.share")]}
        rows={rows.map((row, index) => ({
          key: row.key,
          name: <PlatformName platform={row.key} />,
          value: row.total,
          share: (row.total ?? 0) / largestTotal,
          hue: Math.min(index + 1, LAST_HUE),
          note: row.total === null ? "" : percent(row.total / (total || 1), false),
        }))}
      />
    </Panel>
  );
}

function PlatformName({ platform }: { platform: string }) {
  return platform in PLATFORMS ? (
    <span class="stats-platform">
      <PlatformMark platform={platform as Platform} />
      <span aria-hidden="true">{PLATFORMS[platform as Platform]}</span>
    </span>
  ) : (
    <span class="quiet">{t("platform.none")}</span>
  );
}

function ByBatch({ org }: { org: string }) {
  const request = useRequest(async (signal) => (await api.get("/api/v1/codes", { query: { org, limit: MAX_SHOWN }, signal })).value, [org]);
  return (
    <Panel id="by-batch" title={t("stats.by.batch")}>
      <RequestResult request={request}>
        {(batches) => (
          <Bars
            label={t("stats.by.batch")}
            heads={[t("codes.kind"), t("issued"), t("stats.share"), t("codes.used"), t("codes")]}
            rows={batches.map((batch) => ({
              key: batch.batch_id,
              name: t(batch.kind === "promo" ? "stats.promo" : "stats.license"),
              detail: date(batch.created_at),
              value: batch.uses,
              share: batch.uses / (batch.count * batch.max_uses || 1),
              note: t("stats.of", { n: number(batch.count * batch.max_uses) }),
            }))}
          />
        )}
      </RequestResult>
    </Panel>
  );
}

function BytesServed({ numbers, range }: Props) {
  const { now } = numbers.series.bytes;
  // Scale to a unit in which the ticks are round numbers.
  const largest = Math.max(...now.points.map((point) => point.value ?? 0), 1);
  const unit = 1024 ** Math.floor(Math.log(largest) / Math.log(1024));
  return (
    <Panel id="bytes-served" title={t("stats.bytes")} note={t("stats.bytes.note", { size: size(now.total), n: range.days })}>
      <div class="stats-bytes">
        <Chart
          title={t("stats.bytes")}
          kind="line"
          height={BYTES_PX}
          days={now.points.map((point) => point.at.slice(0, 10))}
          series={[{ name: t("stats.bytes.short"), values: now.points.map((point) => (point.value ?? 0) / unit), hue: 2, hasArea: true }]}
          format={(value) => size(Math.round(value * unit))}
          formatTick={(value) => shortSize(Math.round(value * unit))}
        />
      </div>
    </Panel>
  );
}

/** A size for the axis, without a fraction. */
function shortSize(bytes: number): string {
  return size(bytes).replace(/[.,]0(?=\s)/, "");
}
