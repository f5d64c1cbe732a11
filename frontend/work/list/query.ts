// The query of a list, kept in its address: filter, order and columns.
import { setQuery, query } from "../../shared/router";
import type { Field, Model } from "../api";
import { fieldOf, listColumns } from "../models";
import { type Condition, operators } from "../values/operators";

export const MAX_SORT_KEYS = 5;

export interface SortKey {
  field: string;
  dir: "asc" | "desc";
}

export interface ListQuery {
  filter: Condition[];
  order: SortKey[];
  columns: Field[];
}

/** Read the query from the address. Unknown fields are ignored. */
export function listQuery(model: Model): ListQuery {
  return {
    filter: conditions(model, query.value.get("filter")),
    order: sortKeys(model, query.value.get("order") ?? orderText(defaultOrder(model))),
    columns: columns(model, query.value.get("columns")),
  };
}

function conditions(model: Model, text: string | null): Condition[] {
  try {
    const parsedFilter: unknown = text ? JSON.parse(text) : [];
    const parsedConditions = Array.isArray(parsedFilter) ? (parsedFilter as Condition[]) : [];
    return parsedConditions.filter((condition) => {
      const field = fieldOf(model, String(condition?.field));
      return field !== undefined && operators(field).includes(condition.op);
    });
  } catch {
    return [];
  }
}

function sortKeys(model: Model, text: string | null): SortKey[] {
  const orderParts = (text ?? "").split(",").filter(Boolean);
  return orderParts
    .map((orderPart): SortKey => (orderPart.startsWith("-") ? { field: orderPart.slice(1), dir: "desc" } : { field: orderPart, dir: "asc" }))
    .filter((key) => canOrder(fieldOf(model, key.field)))
    .slice(0, MAX_SORT_KEYS);
}

function columns(model: Model, text: string | null): Field[] {
  const namedFields = (text ?? "").split(",").flatMap((part) => fieldOf(model, part) ?? []);
  return namedFields.length ? namedFields : listColumns(model);
}

export function canOrder(field: Field | undefined): boolean {
  return field !== undefined && field.sortable !== false && operators(field).length > 0;
}

export function setFilter(model: Model, filter: readonly Condition[]): void {
  setQuery({ filter: filter.length ? JSON.stringify(filter) : "", ...viewParameter(model) }, { replaces: false });
}

/** The view that the address names. An address without a view shows the first view that the model declares. */
function viewParameter(model: Model): { view?: string } {
  return model.views?.length ? { view: query.value.get("view") ?? "all" } : {};
}

/** The order of a list whose address names no order: by the date of the model's measures, newest first. */
export function defaultOrder(model: Model): SortKey[] {
  const field = model.measures?.find((measure) => measure.date)?.date;
  return field ? [{ field, dir: "desc" }] : [];
}

function orderText(order: readonly SortKey[]): string {
  return order.map((sortKey) => (sortKey.dir === "desc" ? `-${sortKey.field}` : sortKey.field)).join(",");
}

export function setOrder(model: Model, order: readonly SortKey[]): void {
  const newOrder = orderText(order);
  setQuery({ order: newOrder === orderText(defaultOrder(model)) ? "" : newOrder, ...viewParameter(model) });
}

export function setColumns(fields: readonly Field[]): void {
  setQuery({ columns: fields.map((field) => field.name).join(",") });
}

/** Sort by this column: ascending, then descending, then as usual. With `adds`, the other sort keys stay. */
export function toggleSort(model: Model, order: readonly SortKey[], field: string, keepsOthers: boolean): SortKey[] {
  const currentKey = order.find((sortKey) => sortKey.field === field);
  const otherKeys = keepsOthers ? order.filter((sortKey) => sortKey.field !== field) : [];
  if (currentKey?.dir === "desc" && (otherKeys.length > 0 || defaultOrder(model)[0]?.field !== field)) {
    return otherKeys;
  }
  if (currentKey?.dir === "desc") {
    return [{ field, dir: "asc" }];
  }
  const newKey: SortKey = { field, dir: currentKey ? "desc" : "asc" };
  return keepsOthers && currentKey ? order.map((sortKey) => (sortKey === currentKey ? newKey : sortKey)) : [...otherKeys, newKey].slice(-MAX_SORT_KEYS);
}

/** The filter and order as input for the API. */
export function searchInput({ filter, order }: Pick<ListQuery, "filter" | "order">): { filter?: Condition[]; order?: SortKey[] } {
  return { ...(filter.length ? { filter } : {}), ...(order.length ? { order } : {}) };
}
