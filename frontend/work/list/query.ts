// The query of a list, kept in its address: filter, order and columns.
import { setQuery, query } from "../../shared/router";
import type { Field, Model } from "../api";
import { fieldOf, listColumns } from "../models";
import { type Condition, operators } from "../values/operators";

export const MOST_KEYS = 5;

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
    order: keys(model, query.value.get("order") ?? orderText(usualOrder(model))),
    columns: columns(model, query.value.get("columns")),
  };
}

function conditions(model: Model, said: string | null): Condition[] {
  try {
    const found: unknown = said ? JSON.parse(said) : [];
    const all = Array.isArray(found) ? (found as Condition[]) : [];
    return all.filter((each) => {
      const field = fieldOf(model, String(each?.field));
      return field !== undefined && operators(field).includes(each.op);
    });
  } catch {
    return [];
  }
}

function keys(model: Model, said: string | null): SortKey[] {
  const all = (said ?? "").split(",").filter(Boolean);
  return all
    .map((each): SortKey => (each.startsWith("-") ? { field: each.slice(1), dir: "desc" } : { field: each, dir: "asc" }))
    .filter((each) => canOrder(fieldOf(model, each.field)))
    .slice(0, MOST_KEYS);
}

function columns(model: Model, said: string | null): Field[] {
  const named = (said ?? "").split(",").flatMap((each) => fieldOf(model, each) ?? []);
  return named.length ? named : listColumns(model);
}

export function canOrder(field: Field | undefined): boolean {
  return field !== undefined && operators(field).length > 0;
}

export function setFilter(filter: readonly Condition[]): void {
  setQuery({ filter: filter.length ? JSON.stringify(filter) : "" }, { replaces: false });
}

/** The order of a list whose address names none: by the date that the model is measured by, the newest first. */
export function usualOrder(model: Model): SortKey[] {
  const field = model.measures?.find((each) => each.date)?.date;
  return field ? [{ field, dir: "desc" }] : [];
}

function orderText(order: readonly SortKey[]): string {
  return order.map((each) => (each.dir === "desc" ? `-${each.field}` : each.field)).join(",");
}

export function setOrder(model: Model, order: readonly SortKey[]): void {
  const next = orderText(order);
  setQuery({ order: next === orderText(usualOrder(model)) ? "" : next });
}

export function setColumns(chosen: readonly Field[]): void {
  setQuery({ columns: chosen.map((each) => each.name).join(",") });
}

/** Sort by this column: ascending, then descending, then as usual. With `adds`, the other sort keys stay. */
export function toggleSort(model: Model, order: readonly SortKey[], field: string, adds: boolean): SortKey[] {
  const known = order.find((each) => each.field === field);
  const rest = adds ? order.filter((each) => each.field !== field) : [];
  if (known?.dir === "desc" && (rest.length > 0 || usualOrder(model)[0]?.field !== field)) {
    return rest;
  }
  if (known?.dir === "desc") {
    return [{ field, dir: "asc" }];
  }
  const next: SortKey = { field, dir: known ? "desc" : "asc" };
  return adds && known ? order.map((each) => (each === known ? next : each)) : [...rest, next].slice(-MOST_KEYS);
}

/** The filter and order as input for the API. */
export function searchInput({ filter, order }: Pick<ListQuery, "filter" | "order">): { filter?: Condition[]; order?: SortKey[] } {
  return { ...(filter.length ? { filter } : {}), ...(order.length ? { order } : {}) };
}
