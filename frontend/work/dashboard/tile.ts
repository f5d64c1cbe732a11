// Dashboard tiles: their stored form, their widths, and the default tiles of the standard dashboards.
import { type Field, inLanguage, type Measure, type Meta, type Model } from "../api";
import { mayRun, modelOf, workflowField } from "../models";
import type { Condition } from "../values/operators";
import { measuresOf } from "./series";

/** "bar" counts the present records by a field. "bars" counts the records of each time step by a field. "pivot" counts
 *  the present records by a field that the viewer chooses. */
export const KINDS = ["kpi", "line", "bars", "bar", "pivot", "list", "text"] as const;
export type TileKind = (typeof KINDS)[number] | "area";

/** A tile as the service stores it. An absent member has its default value. */
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
  /** The id, which stays the same when the tile is moved. */
  key: string;
}

const COLUMNS = 12;
/** The allowed widths of a tile, in columns. */
export const WIDTHS = [3, 4, 6, 8, 12] as const;
export const DEFAULT_WIDTHS: Record<TileKind, number> = { kpi: 3, line: 8, area: 8, bars: 4, bar: 4, pivot: 6, list: 4, text: 4 };
export const MAX_TILES = 24;

let tileCount = 0;

export function newTile(tile: StoredTile): Tile {
  tileCount += 1;
  return { w: DEFAULT_WIDTHS[tile.kind], ...tile, key: `tile-${tileCount}` };
}

/** The allowed width that is nearest to the tile's stored width. */
export function widthOf({ kind, w = DEFAULT_WIDTHS[kind] }: StoredTile): number {
  return WIDTHS.reduce((nearest, width) => (Math.abs(width - w) < Math.abs(nearest - w) ? width : nearest), COLUMNS);
}

/** Parse stored tiles, and sort them by row and column. */
export function parseTiles(text: string | null): Tile[] {
  const storedTiles = JSON.parse(text || "[]") as StoredTile[];
  const orderOf = ({ x = 0, y = 0 }: StoredTile) => y * COLUMNS + x;
  return storedTiles.toSorted((one, other) => orderOf(one) - orderOf(other)).map(newTile);
}

/** Serialize the tiles. Each tile gets the next position, from left to right and row by row. */
export function tilesText(tiles: readonly Tile[]): string {
  let [x, y] = [0, 0];
  const placed = tiles.map(({ key: _, ...tile }): StoredTile => {
    const w = widthOf(tile);
    if (x + w > COLUMNS) {
      [x, y] = [0, y + 1];
    }
    const placedTile = { ...tile, x, y, w };
    x += w;
    return placedTile;
  });
  return JSON.stringify(placed);
}

export function movedTile(tiles: readonly Tile[], fromIndex: number, toIndex: number): Tile[] {
  const tile = tiles[fromIndex];
  const otherTiles = tiles.filter((_, index) => index !== fromIndex);
  const index = Math.max(0, Math.min(toIndex, otherTiles.length));
  return tile ? [...otherTiles.slice(0, index), tile, ...otherTiles.slice(index)] : [...tiles];
}

/** The allowed width that is `steps` sizes larger (or smaller, if negative), at most the largest (smallest) one. */
export function nextWidth(tile: StoredTile, steps: number): number {
  const widthIndex = WIDTHS.findIndex((width) => width === widthOf(tile));
  return WIDTHS[Math.max(0, Math.min(WIDTHS.length - 1, widthIndex + steps))] ?? COLUMNS;
}

/** The tile's measure, or undefined if it does not exist or the viewer has no access to it. */
export function measureOf(meta: Meta, tile: StoredTile): Measure | undefined {
  const model = modelOf(meta, tile.model ?? "");
  const { fn = "count", field = null, date } = tile;
  const isSame = (measure: Measure) => measure.fn === fn && measure.field === (field || null) && (!date || measure.date === date);
  const measures = model ? measuresOf(model).filter(isSame) : [];
  return measures.find((measure) => hasFilterOf(tile, measure)) ?? measures.find((measure) => !measure.filter?.length) ?? measures[0];
}

function hasFilterOf(tile: StoredTile, measure: Measure): boolean {
  return JSON.stringify(tile.filter ?? []) === JSON.stringify(measure.filter ?? []);
}

/** The tile's filter. It is empty if it equals the measure's filter, which applies anyway. */
export function ownFilterOf(tile: StoredTile, measure: Measure | undefined): Condition[] {
  return measure && hasFilterOf(tile, measure) ? [] : (tile.filter ?? []);
}

export function measureTile(kind: TileKind, model: Model, { fn, field, date, filter }: Measure): StoredTile {
  return { kind, model: model.name, fn, field, date, ...(filter?.length ? { filter } : {}) };
}

/** The fields to count records by. The workflow's state field comes first, or else the first select field. */
export function countedFields(model: Model): Field[] {
  const fields = model.fields.filter((field) => !field.masked && ["select", "bool", "ref", "date"].includes(field.kind));
  const groupField = workflowField(model) ?? fields.find((field) => field.kind === "select");
  return groupField ? [groupField, ...fields.filter((field) => field !== groupField)] : fields;
}

/** The select fields, except the workflow's state field, by which a time series can be broken down. */
export function partFields(model: Model): Field[] {
  const state = workflowField(model);
  return mayRun(model, "series") ? model.fields.filter((field) => field.kind === "select" && !field.masked && field !== state) : [];
}

const MAX_FIGURES = 4;
const MAX_PARTS = 2;

/** The default tiles for a group of models, in this order:
 *  1. Up to four measures as figures. Models with more measures come first.
 *  2. The first of these measures over time.
 *  3. The records of that measure's model by state.
 *  4. Breakdowns over time, and a list of that model's records.
 *  5. A pivot for each model. If no model has a measure, there are only pivots. */
export function defaultTiles(models: readonly Model[]): Tile[] {
  const allMeasures = models
    .toSorted((one, other) => measuresOf(other).length - measuresOf(one).length)
    .flatMap((model) => measuresOf(model).map((measure) => ({ model, measure })));
  const firstMeasures = allMeasures.slice(0, MAX_FIGURES);
  const [firstMeasure] = firstMeasures;
  const counts = models.map((model): StoredTile => ({ kind: "pivot", model: model.name, ...pivotStart(model, firstMeasure?.model), w: models.length === 1 ? COLUMNS : 6 }));
  if (!firstMeasure) {
    return counts.map(newTile);
  }
  const { model } = firstMeasure;
  const state = workflowField(model);
  const states: StoredTile[] = state && mayRun(model, "count_by") ? [{ kind: "bar", model: model.name, by: state.name }] : [];
  const figureTiles = firstMeasures.map((firstMeasure): StoredTile => ({ ...measureTile("kpi", firstMeasure.model, firstMeasure.measure), w: COLUMNS / firstMeasures.length }));
  const line = { ...measureTile("line", model, firstMeasure.measure), w: states.length > 0 ? 8 : COLUMNS };
  const lower = [...partTiles(model, allMeasures), ...listTiles(model)];
  const widenedTiles = lower.map((tile) => ({ ...tile, w: COLUMNS / lower.length }));
  return [...figureTiles, line, ...states, ...widenedTiles, ...counts].map(newTile);
}

/** The field that a pivot counts by at first. For the model of the first figure, it is the first user field,
 *  because a state tile usually shows the states of that model. */
function pivotStart(model: Model, stateModel: Model | undefined): Pick<StoredTile, "by"> {
  const person = countedFields(model).find((countedField) => countedField.ref === "user");
  return model === stateModel && person ? { by: person.name } : {};
}

/** One tile for each field that breaks down a count over time, up to a maximum. The fields of `firstModel` come first. */
function partTiles(firstModel: Model, measures: readonly { model: Model; measure: Measure }[]): StoredTile[] {
  const countMeasures = measures.filter(({ measure }) => measure.fn === "count").toSorted((one, other) => Number(other.model === firstModel) - Number(one.model === firstModel));
  const models = new Map(countMeasures.map((countMeasure) => [countMeasure.model.name, countMeasure]));
  return [...models.values()]
    .flatMap(({ model, measure }) => partFields(model).map((field): StoredTile => ({ ...measureTile("bars", model, measure), by: field.name })))
    .slice(0, MAX_PARTS);
}

function listTiles(model: Model): StoredTile[] {
  const hasOrder = workflowField(model) !== undefined || model.fields.some((field) => field.kind === "money" && !field.masked);
  return mayRun(model, "list") && hasOrder ? [{ kind: "list", model: model.name }] : [];
}

/** The measure's label in the viewer's language. */
export function measureName(measure: Measure): string {
  return inLanguage(measure.label, measure.fn);
}
