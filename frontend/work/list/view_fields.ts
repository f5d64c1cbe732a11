// Converts between the address of a list and the fields of a saved view: query, columns and density.
import type { Model, Row } from "../api";
import { listColumns } from "../models";
import { MIN_WIDTH_REM, MAX_WIDTH_REM } from "./layout";

interface Column {
  field: string;
  /** In pixels. */
  width?: number | null;
  frozen?: boolean;
}

const REM_PX = 16;

function parseJson<Value>(text: unknown, fallback: Value): Value {
  try {
    return text ? (JSON.parse(String(text)) as Value) : fallback;
  } catch {
    return fallback;
  }
}

/** The fields of a view for this query string. */
export function viewFields(model: Model, search: string): { query: string; columns: string | null; density: string } {
  const params = new URLSearchParams(search);
  const filter = parseJson<unknown[]>(params.get("filter"), []);
  const keys = (params.get("order") ?? "").split(",").filter(Boolean);
  const order = keys.map((key) => (key.startsWith("-") ? { field: key.slice(1), dir: "desc" } : { field: key, dir: "asc" }));
  const query = { ...(filter.length ? { filter } : {}), ...(order.length ? { order } : {}) };
  return {
    query: JSON.stringify(query),
    columns: columnsOf(model, params),
    density: params.get("density") === "relaxed" ? "relaxed" : "compact",
  };
}

/** The columns as JSON, or null for the default columns and widths. */
function columnsOf(model: Model, params: URLSearchParams): string | null {
  const widths = new Map((params.get("widths") ?? "").split(",").map((part): [string, number] => [part.split(":")[0] ?? "", Number(part.split(":")[1])]));
  const namedColumns = (params.get("columns") ?? "").split(",").filter(Boolean);
  const isFirstUnfrozen = params.get("freeze") === "0";
  if (namedColumns.length === 0 && !params.get("widths") && !isFirstUnfrozen) {
    return null;
  }
  const names = namedColumns.length ? namedColumns : listColumns(model).map((column) => column.name);
  const columns = names.map((field, index): string | Column => {
    const width_rem = widths.get(field);
    const width = width_rem ? { width: Math.round(width_rem * REM_PX) } : {};
    return width_rem || index === 0 ? { field, ...width, frozen: index === 0 && !isFirstUnfrozen } : field;
  });
  return JSON.stringify(columns);
}

/** The query string of the list for this view. */
export function searchOfView(model: Model, view: Row): string {
  const { filter = [], order = [] } = parseJson<{ filter?: unknown[]; order?: { field: string; dir?: string }[] }>(view["query"], {});
  const columns = parseJson<(string | Column)[]>(view["columns"], []).map((column): Column => (typeof column === "string" ? { field: column } : column));
  const names = columns.map((column) => column.field).join(",");
  const widths = columns.flatMap(({ field, width }) => (width ? [`${field}:${Math.max(MIN_WIDTH_REM, Math.min(MAX_WIDTH_REM, width / REM_PX))}`] : []));
  const entries: [string, string][] = [
    ["filter", filter.length ? JSON.stringify(filter) : ""],
    ["order", order.map((sortKey) => (sortKey.dir === "desc" ? `-${sortKey.field}` : sortKey.field)).join(",")],
    ["columns", names === listColumns(model).map((column) => column.name).join(",") ? "" : names],
    ["widths", widths.join(",")],
    ["density", view["density"] === "relaxed" ? "relaxed" : ""],
    ["freeze", columns[0]?.frozen === false ? "0" : ""],
  ];
  return new URLSearchParams(entries.filter(([, value]) => value)).toString();
}

/** The query string in the form that a saved view has, for comparisons. */
export function canonicalSearch(model: Model, search: string): string {
  return searchOfView(model, { id: "", revision: 0, ...viewFields(model, search) });
}
