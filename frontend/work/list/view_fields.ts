// Converts between the address of a list and the fields of a saved view: query, columns and density.
import type { Model, Row } from "../api";
import { listColumns } from "../models";
import { LEAST_REM, MOST_REM } from "./layout";

interface Column {
  field: string;
  /** In pixels. */
  width?: number | null;
  frozen?: boolean;
}

const PX = 16;

function parsed<Value>(text: unknown, otherwise: Value): Value {
  try {
    return text ? (JSON.parse(String(text)) as Value) : otherwise;
  } catch {
    return otherwise;
  }
}

/** The fields of a view for this query string. */
export function viewFields(model: Model, search: string): { query: string; columns: string | null; density: string } {
  const said = new URLSearchParams(search);
  const filter = parsed<unknown[]>(said.get("filter"), []);
  const keys = (said.get("order") ?? "").split(",").filter(Boolean);
  const order = keys.map((each) => (each.startsWith("-") ? { field: each.slice(1), dir: "desc" } : { field: each, dir: "asc" }));
  const query = { ...(filter.length ? { filter } : {}), ...(order.length ? { order } : {}) };
  return {
    query: JSON.stringify(query),
    columns: columnsOf(model, said),
    density: said.get("density") === "relaxed" ? "relaxed" : "compact",
  };
}

/** The columns as JSON, or null for the default columns and widths. */
function columnsOf(model: Model, said: URLSearchParams): string | null {
  const widths = new Map((said.get("widths") ?? "").split(",").map((each): [string, number] => [each.split(":")[0] ?? "", Number(each.split(":")[1])]));
  const named = (said.get("columns") ?? "").split(",").filter(Boolean);
  const isLoose = said.get("freeze") === "0";
  if (named.length === 0 && !said.get("widths") && !isLoose) {
    return null;
  }
  const names = named.length ? named : listColumns(model).map((each) => each.name);
  const columns = names.map((field, place): string | Column => {
    const width_rem = widths.get(field);
    const width = width_rem ? { width: Math.round(width_rem * PX) } : {};
    return width_rem || place === 0 ? { field, ...width, frozen: place === 0 && !isLoose } : field;
  });
  return JSON.stringify(columns);
}

/** The query string of the list for this view. */
export function searchOfView(model: Model, view: Row): string {
  const { filter = [], order = [] } = parsed<{ filter?: unknown[]; order?: { field: string; dir?: string }[] }>(view["query"], {});
  const columns = parsed<(string | Column)[]>(view["columns"], []).map((each): Column => (typeof each === "string" ? { field: each } : each));
  const names = columns.map((each) => each.field).join(",");
  const widths = columns.flatMap(({ field, width }) => (width ? [`${field}:${Math.max(LEAST_REM, Math.min(MOST_REM, width / PX))}`] : []));
  const said: [string, string][] = [
    ["filter", filter.length ? JSON.stringify(filter) : ""],
    ["order", order.map((each) => (each.dir === "desc" ? `-${each.field}` : each.field)).join(",")],
    ["columns", names === listColumns(model).map((each) => each.name).join(",") ? "" : names],
    ["widths", widths.join(",")],
    ["density", view["density"] === "relaxed" ? "relaxed" : ""],
    ["freeze", columns[0]?.frozen === false ? "0" : ""],
  ];
  return new URLSearchParams(said.filter(([, value]) => value)).toString();
}

/** The query string in the form that a saved view has, for comparisons. */
export function canonicalSearch(model: Model, search: string): string {
  return searchOfView(model, { id: "", revision: 0, ...viewFields(model, search) });
}
