// The tiles of a dashboard: as a dashboard keeps them, their widths, and those of the dashboards that are there for everyone.
import { type Field, inLanguage, type Measure, type Meta, type Model } from "../api";
import { may, modelOf, workflowField } from "../models";
import type { Condition } from "../values/operators";
import { measuresOf } from "./series";

/** "bar" counts the records of now by a field, "bars" those of each step, and "pivot" lets the viewer choose the field. */
export const KINDS = ["kpi", "line", "bars", "bar", "pivot", "list", "text"] as const;
export type TileKind = (typeof KINDS)[number] | "area";

/** What the service keeps of a tile. What is left out has its default. */
export interface StoredTile {
  kind: TileKind;
  x?: number;
  y?: number;
  w?: number;
  h?: number;
  title?: string;
  model?: string | null;
  fn?: Measure["fn"];
  field?: string | null;
  date?: string | null;
  by?: string | null;
  step?: string | null;
  compare?: boolean;
  better?: "up" | "down" | null;
  view?: string | null;
  filter?: Condition[];
  text?: string;
}

export interface Tile extends StoredTile {
  /** It is the same one wherever it is moved to. */
  key: string;
}

const COLUMNS = 12;
/** How many of the twelve columns a tile may have. */
export const WIDTHS = [3, 4, 6, 8, 12] as const;
export const DEFAULT_WIDTHS: Record<TileKind, number> = { kpi: 3, line: 8, area: 8, bars: 4, bar: 4, pivot: 6, list: 4, text: 4 };
export const MOST_TILES = 24;

let tileCount = 0;

export function newTile(tile: StoredTile): Tile {
  tileCount += 1;
  return { w: DEFAULT_WIDTHS[tile.kind], ...tile, key: `tile-${tileCount}` };
}

/** The width of a tile: the one of those there are that is next to what it says. */
export function widthOf({ kind, w = DEFAULT_WIDTHS[kind] }: StoredTile): number {
  return WIDTHS.reduce((best, each) => (Math.abs(each - w) < Math.abs(best - w) ? each : best), COLUMNS);
}

/** The tiles in the order of their places, as they were saved. */
export function parseTiles(text: string | null): Tile[] {
  const stored = JSON.parse(text || "[]") as StoredTile[];
  const place = ({ x = 0, y = 0 }: StoredTile) => y * COLUMNS + x;
  return stored.toSorted((one, other) => place(one) - place(other)).map(newTile);
}

/** The tiles as they are saved, each with the place that it has when they are set one after the other. */
export function tilesText(tiles: readonly Tile[]): string {
  let [x, y] = [0, 0];
  const placed = tiles.map(({ key: _, ...tile }): StoredTile => {
    const w = widthOf(tile);
    if (x + w > COLUMNS) {
      [x, y] = [0, y + 1];
    }
    const at = { ...tile, x, y, w };
    x += w;
    return at;
  });
  return JSON.stringify(placed);
}

export function movedTile(tiles: readonly Tile[], from: number, to: number): Tile[] {
  const tile = tiles[from];
  const others = tiles.filter((_, place) => place !== from);
  const place = Math.max(0, Math.min(to, others.length));
  return tile ? [...others.slice(0, place), tile, ...others.slice(place)] : [...tiles];
}

/** The next width in this direction, or the one that it has. */
export function nextWidth(tile: StoredTile, steps: number): number {
  const at = WIDTHS.findIndex((each) => each === widthOf(tile));
  return WIDTHS[Math.max(0, Math.min(WIDTHS.length - 1, at + steps))] ?? COLUMNS;
}

/** The measure of a tile, where this person can be shown it. */
export function measureOf(meta: Meta, tile: StoredTile): Measure | undefined {
  const model = modelOf(meta, tile.model ?? "");
  const { fn = "count", field = null, date } = tile;
  const isSame = (each: Measure) => each.fn === fn && each.field === (field || null) && (!date || each.date === date);
  const measures = model ? measuresOf(model).filter(isSame) : [];
  return measures.find((each) => hasFilterOf(tile, each)) ?? measures.find((each) => !each.filter?.length) ?? measures[0];
}

function hasFilterOf(tile: StoredTile, measure: Measure): boolean {
  return JSON.stringify(tile.filter ?? []) === JSON.stringify(measure.filter ?? []);
}

/** The conditions of a tile that its measure does not have anyway. */
export function ownFilterOf(tile: StoredTile, measure: Measure | undefined): Condition[] {
  return measure && hasFilterOf(tile, measure) ? [] : (tile.filter ?? []);
}

export function measureTile(kind: TileKind, model: Model, { fn, field, date, filter }: Measure): StoredTile {
  return { kind, model: model.name, fn, field, date, ...(filter?.length ? { filter } : {}) };
}

/** The fields that records are counted by, the one that the workflow moves first. */
export function countedFields(model: Model): Field[] {
  const fields = model.fields.filter((each) => !each.masked && ["select", "bool", "ref", "date"].includes(each.kind));
  const first = workflowField(model) ?? fields.find((each) => each.kind === "select");
  return first ? [first, ...fields.filter((each) => each !== first)] : fields;
}

/** The fields with few values by which records are told apart over time. */
export function partFields(model: Model): Field[] {
  const state = workflowField(model);
  return may(model, "series") ? model.fields.filter((each) => each.kind === "select" && !each.masked && each !== state) : [];
}

const MOST_FIGURES = 4;
const MOST_PARTS = 2;

/** The tiles for a group of models: figures first, those of the model with the most measures before the others, each in the
 *  order in which the model declares them; then a series, states, parts, records and counts. */
export function defaultTiles(models: readonly Model[]): Tile[] {
  const allMeasures = models
    .toSorted((one, other) => measuresOf(other).length - measuresOf(one).length)
    .flatMap((model) => measuresOf(model).map((measure) => ({ model, measure })));
  const measured = allMeasures.slice(0, MOST_FIGURES);
  const [first] = measured;
  const counts = models.map((model): StoredTile => ({ kind: "pivot", model: model.name, ...pivotStart(model, first?.model), w: models.length === 1 ? COLUMNS : 6 }));
  if (!first) {
    return counts.map(newTile);
  }
  const { model } = first;
  const state = workflowField(model);
  const states: StoredTile[] = state && may(model, "count_by") ? [{ kind: "bar", model: model.name, by: state.name }] : [];
  const figures = measured.map((each): StoredTile => ({ ...measureTile("kpi", each.model, each.measure), w: COLUMNS / measured.length }));
  const line = { ...measureTile("line", model, first.measure), w: states.length > 0 ? 8 : COLUMNS };
  const lower = [...partTiles(model, allMeasures), ...listTiles(model)];
  const wide = lower.map((each) => ({ ...each, w: COLUMNS / lower.length }));
  return [...figures, line, ...states, ...wide, ...counts].map(newTile);
}

/** The field that a pivot counts by first. For the model whose states have a tile, it is who is in charge instead. */
function pivotStart(model: Model, stateModel: Model | undefined): Pick<StoredTile, "by"> {
  const person = countedFields(model).find((each) => each.ref === "user");
  return model === stateModel && person ? { by: person.name } : {};
}

/** The counts over time by the fields that tell records apart, those of the first model first. */
function partTiles(first: Model, measured: readonly { model: Model; measure: Measure }[]): StoredTile[] {
  const counted = measured.filter(({ measure }) => measure.fn === "count").toSorted((one, other) => Number(other.model === first) - Number(one.model === first));
  const models = new Map(counted.map((each) => [each.model.name, each]));
  return [...models.values()]
    .flatMap(({ model, measure }) => partFields(model).map((field): StoredTile => ({ ...measureTile("bars", model, measure), by: field.name })))
    .slice(0, MOST_PARTS);
}

function listTiles(model: Model): StoredTile[] {
  const hasOrder = workflowField(model) !== undefined || model.fields.some((each) => each.kind === "money" && !each.masked);
  return may(model, "list") && hasOrder ? [{ kind: "list", model: model.name }] : [];
}

/** What a measure is called. */
export function measureName(measure: Measure): string {
  return inLanguage(measure.label, measure.fn);
}
