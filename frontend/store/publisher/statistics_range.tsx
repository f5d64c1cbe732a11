// The range of the statistics (days, step, product), which is part of the address, and its controls.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { TextField } from "../../shared/components/field";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { query, setQuery } from "../../shared/router";
import { shortDate, translator } from "../../shared/i18n";
import type { Schemas } from "../api";

const t = translator("publisher");

const DAY_MS = 86_400_000;
const MAX_DAYS = 1096;
const DAILY_DAYS = 120;
const PRESETS = [7, 30, 90, 180, 365] as const;
const DEFAULT_DAYS = 90;

export const STEPS = ["day", "week", "month"] as const;
export type Step = (typeof STEPS)[number];
export const METRICS = ["downloads", "redemptions", "updates", "followers"] as const;
export type Metric = (typeof METRICS)[number];

export interface StatisticsRange {
  from: string;
  to: string;
  days: number;
  step: Step;
  metric: Metric;
  /** The slug of a product, or empty for all. */
  product: string;
}

/** The date (UTC) this many days before today. */
export function dayBefore(days: number, now_ms = Date.now()): string {
  return new Date(now_ms - days * DAY_MS).toISOString().slice(0, 10);
}

function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
}

/** The preceding range of the same length. */
export function rangeBefore({ from, days }: Pick<StatisticsRange, "from" | "days">): { from: string; to: string } {
  const start = Date.parse(from);
  return { from: dayBefore(days, start), to: dayBefore(1, start) };
}

/** The range in the address. Invalid values are replaced by the last 90 days. */
export function currentRange(): StatisticsRange {
  const parameters = query.value;
  const isDay = (value: string | null): value is string => /^\d{4}-\d\d-\d\d$/.test(value ?? "") && !Number.isNaN(Date.parse(value ?? ""));
  const [from, to] = [parameters.get("from"), parameters.get("to")];
  const isValid = isDay(from) && isDay(to) && from <= to && to <= dayBefore(0) && daysBetween(from, to) <= MAX_DAYS;
  const range = isValid ? { from, to } : { from: dayBefore(DEFAULT_DAYS), to: dayBefore(1) };
  const days = daysBetween(range.from, range.to);
  const step = STEPS.find((step) => step === parameters.get("step")) ?? (days <= DAILY_DAYS ? "day" : "week");
  const metric = METRICS.find((metric) => metric === parameters.get("metric")) ?? "downloads";
  return { ...range, days, step, metric, product: parameters.get("product") ?? "" };
}

interface Props {
  org: string;
  range: StatisticsRange;
  products: readonly Schemas["Product"][];
}

export function StatisticsControls({ org, range, products }: Props) {
  const [isOpen, setOpen] = useState(false);
  const choose = (days: number) => setQuery({ from: dayBefore(days), to: dayBefore(1), step: undefined });
  const file = new URLSearchParams({ org, metric: range.metric, from: range.from, to: range.to, step: range.step, ...(range.product ? { product: range.product } : {}) });
  return (
    <div class="row stats-controls">
      <select class="input" aria-label={t("stats.product")} value={range.product} onChange={(event) => setQuery({ product: event.currentTarget.value })}>
        <option value="">{t("stats.products.all")}</option>
        {products.map((choice) => (
          <option key={choice.slug} value={choice.slug} selected={choice.slug === range.product}>
            {choice.title}
          </option>
        ))}
      </select>
      <Menu
        icon="calendar"
        label={`${shortDate(range.from)} – ${shortDate(range.to)}`}
        items={[
          ...PRESETS.map((days) => ({ label: t("stats.last", { n: days }), does: () => choose(days) })),
          { label: t("stats.custom"), does: () => setOpen(true) },
        ]}
      />
      <a class="button" href={`/api/v1/org/stats.csv?${file}`} download={`${org}-${range.metric}-${range.from}-${range.to}.csv`}>
        <Icon name="download" size="s" />
        <span>{t("stats.csv")}</span>
      </a>
      <CustomRange range={range} isOpen={isOpen} onClose={() => setOpen(false)} />
    </div>
  );
}

function CustomRange({ range, isOpen, onClose }: { range: StatisticsRange; isOpen: boolean; onClose: () => void }) {
  const [from, setFrom] = useState(range.from);
  const [to, setTo] = useState(range.to);
  const [error, setError] = useState<string | undefined>();
  const apply = () => {
    const isValid = from && to && from <= to && to <= dayBefore(0) && daysBetween(from, to) <= MAX_DAYS;
    setError(isValid ? undefined : t("stats.range.fault"));
    if (isValid) {
      setQuery({ from, to, step: undefined });
      onClose();
    }
  };
  return (
    <Dialog
      title={t("stats.range")}
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <Button variant="strong" onClick={apply}>
          {t("stats.show")}
        </Button>
      }
    >
      <div class="row">
        <TextField name="from" type="date" label={t("stats.from")} value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
        <TextField name="to" type="date" label={t("stats.to")} value={to} error={error} onInput={(event) => setTo(event.currentTarget.value)} />
      </div>
    </Dialog>
  );
}
