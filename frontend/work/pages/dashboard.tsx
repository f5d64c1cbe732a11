// Dashboards: one for each group of models, with figures, charts and top records over a chosen period.
import { CopyButton } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { Empty, RequestResult } from "../../shared/components/states";
import { useRequest } from "../../shared/request";
import { query, setQuery } from "../../shared/router";
import { translator } from "../../shared/i18n";
import { type Field, type Measure, type Meta, type Model, run, type Row } from "../api";
import { ValueCounts } from "../board/value_counts";
import { periodOf, PERIODS, type Period } from "../dashboard/periods";
import { loadSeries, measuresOf, type Series } from "../dashboard/series";
import { Kpi, Largest, OverTime, Parts, States, type TileProps } from "../dashboard/tiles";
import { ownedModels } from "../home/own_records";
import { businessModels, may, modelOf, titleOf, workflowField } from "../models";
import { moduleGroups } from "../shell/navigation";
import type { Condition } from "../values/operators";
import "../dashboard/dashboard.css";

const t = translator("dashboard");

const MOST_FIGURES = 4;
const MOST_PEOPLE = 200;

/** The fields by which records are counted, the workflow field first. */
function countedFields(model: Model): Field[] {
  const fields = model.fields.filter((each) => !each.masked && ["select", "bool", "ref", "date"].includes(each.kind));
  const first = workflowField(model) ?? fields.find((each) => each.kind === "select");
  return first ? [first, ...fields.filter((each) => each !== first)] : fields;
}

interface Board {
  name: string;
  label: string;
  models: Model[];
}

function boardsOf(meta: Meta): Board[] {
  const shown = businessModels(meta).filter((each) => may(each, "count_by") && countedFields(each).length > 0);
  const inGroup = (name: string) => shown.filter((each) => (each.group ?? each.module) === name);
  return moduleGroups(meta)
    .map(({ name, label }) => ({ name, label, models: inGroup(name) }))
    .filter((each) => each.models.length > 0)
    .toSorted((a, b) => weightOf(b) - weightOf(a));
}

/** The rank of a dashboard: the one with the most tiles comes first. */
function weightOf({ models }: Board): number {
  return Math.max(...models.map((each) => measuresOf(each).length));
}

export function Dashboard({ meta }: { meta: Meta }) {
  const boards = boardsOf(meta);
  const board = boards.find((each) => each.name === query.value.get("board")) ?? boards[0];
  const name = query.value.get("period") ?? "12w";
  const period = periodOf(name, query.value.get("from"), query.value.get("to"));
  const addressOf = (to: string) => {
    const next = new URLSearchParams(query.value);
    next.set("board", to);
    return `/dashboard?${next}`;
  };
  return (
    <>
      <Heading title={t("title")}>
        <nav class="board-tabs" aria-label={t("title")}>
          {boards.map((each) => (
            <a key={each.name} class="board-tab" href={addressOf(each.name)} aria-current={each === board ? "page" : undefined}>
              {each.label}
            </a>
          ))}
        </nav>
        <span class="right" />
        {board && <Choices {...{ meta, board, name, period }} />}
      </Heading>
      {board ? <Tiles key={board.name} {...{ meta, board, period }} /> : <Empty icon="layout-dashboard" title={t("empty")} />}
    </>
  );
}

/** The owner field of a dashboard's records. */
function ownerOf(meta: Meta, model: Model): Field | undefined {
  return ownedModels(meta).find((each) => each.model === model)?.owner;
}

function Choices({ meta, board, name, period }: { meta: Meta; board: Board; name: string; period: Period }) {
  const hasOwner = board.models.some((each) => ownerOf(meta, each));
  const people = useRequest(async (signal) => (hasOwner ? (await run<Row[]>("user", "list", { limit: MOST_PEOPLE }, signal)).value : []), [hasOwner]);
  const user = modelOf(meta, "user");
  return (
    <div class="board-choices">
      {name === "custom" && (
        <>
          <input class="input tight" type="date" aria-label={t("from")} value={period.from} max={period.to} onChange={(event) => setQuery({ from: event.currentTarget.value })} />
          <input class="input tight" type="date" aria-label={t("to")} value={period.to} min={period.from} onChange={(event) => setQuery({ to: event.currentTarget.value })} />
        </>
      )}
      <select class="input tight" aria-label={t("period")} value={name} onChange={(event) => setQuery({ period: event.currentTarget.value })}>
        {PERIODS.map((each) => (
          <option key={each} value={each}>
            {t(`period.${each}`)}
          </option>
        ))}
      </select>
      {hasOwner && user && people.state === "loaded" && (
        <select class="input tight" aria-label={t("owner")} value={query.value.get("owner") ?? ""} onChange={(event) => setQuery({ owner: event.currentTarget.value })}>
          <option value="">{t("owner.all")}</option>
          {people.value.map((each) => (
            <option key={each.id} value={each.id}>
              {String(each["name"] ?? titleOf(user, each))}
            </option>
          ))}
        </select>
      )}
      <CopyButton text={location.href} of={t("link.of")} label={t("link")} />
    </div>
  );
}

interface Measured {
  model: Model;
  measure: Measure;
  series: Series;
}

function Tiles({ meta, board, period }: { meta: Meta; board: Board; period: Period }) {
  const owner = query.value.get("owner") ?? "";
  const filterOf = (model: Model): Condition[] => {
    const field = ownerOf(meta, model);
    return owner && field ? [{ field: field.name, op: "eq", value: owner }] : [];
  };
  const measured = board.models.flatMap((model) => measuresOf(model).map((measure) => ({ model, measure }))).toSorted((a, b) => rank(a.measure) - rank(b.measure)).slice(0, MOST_FIGURES);
  const found = useRequest(
    (signal) => Promise.all(measured.map(async (each): Promise<Measured> => ({ ...each, series: await loadSeries({ ...each, period, filter: filterOf(each.model) }, signal) }))),
    [period.from, period.to, owner],
    { keepsPrevious: true },
  );
  const props = (model: Model): TileProps => ({ meta, model, period, filter: filterOf(model) });
  return (
    <div class="dashboard">
      <RequestResult of={found}>{(all) => <Measures {...{ all, props }} />}</RequestResult>
      <div class="figures">
        {board.models.map((model) => (
          <ValueCounts key={model.name} meta={meta} model={model} fields={countedFields(model)} />
        ))}
      </div>
    </div>
  );
}

/** The rank of a measure: amounts come first. */
function rank(measure: Measure): number {
  return ["sum", "count", "avg", "median"].indexOf(measure.fn);
}

/** The CSS class of a tile, by the number of tiles in its row. */
const SIZES = ["", "wide12", "wide6", "wide4"];

function Measures({ all, props }: { all: readonly Measured[]; props: (model: Model) => TileProps }) {
  const [first] = all;
  if (!first) {
    return null;
  }
  const { model } = first;
  const state = workflowField(model);
  const counted = all.filter((each) => each.measure.fn === "count" && each.series.total).toSorted((a, b) => Number(b.model === model) - Number(a.model === model));
  const parts = [...new Map(counted.map((each) => [each.model.name, each])).values()].flatMap(({ model: each, measure }) => partFields(each).map((by) => ({ model: each, measure, by })));
  const money = model.fields.find((each) => each.kind === "money" && !each.masked);
  const due = model.fields.find((each) => each.kind === "date" && !each.masked);
  const shown = parts.slice(0, 2);
  const hasList = may(model, "list") && (money !== undefined || state !== undefined);
  const size = SIZES[shown.length + Number(hasList)] ?? "wide4";
  return (
    <>
      <div class="kpis">
        {all.map((each) => (
          <Kpi key={`${each.model.name}/${each.measure.fn}/${each.measure.date}`} {...each} />
        ))}
      </div>
      <OverTime {...props(model)} {...first} />
      {state && may(model, "count_by") && <States {...props(model)} state={state} />}
      {shown.map((each) => (
        <Parts key={`${each.model.name}/${each.by.name}`} {...props(each.model)} {...{ ...each, size }} />
      ))}
      {hasList && <Largest {...props(model)} {...{ money, due, size }} />}
    </>
  );
}

/** The fields with few values, for charts that split the records. */
function partFields(model: Model): Field[] {
  const state = workflowField(model);
  return may(model, "series") ? model.fields.filter((each) => each.kind === "select" && !each.masked && each !== state) : [];
}
