// A plain table for short lists. Large lists use the grid of the work app.
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon";

export interface Column<Row> {
  name: string;
  label: string;
  cell: (row: Row) => ComponentChildren;
  isNumber?: boolean;
  canSort?: boolean;
}

export interface SortOrder {
  field: string;
  dir: "asc" | "desc";
}

interface Props<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  order?: SortOrder | null;
  onOrder?: (order: SortOrder) => void;
}

/** The first column is the heading of the row. Pressing a sorted column reverses the order. */
export function Table<Row>({ caption, columns, rows, keyOf, order = null, onOrder }: Props<Row>) {
  const sorted = (name: string) =>
    order?.field === name ? (order.dir === "asc" ? ("ascending" as const) : ("descending" as const)) : undefined;
  const press = (name: string) =>
    onOrder?.({ field: name, dir: order?.field === name && order.dir === "asc" ? "desc" : "asc" });
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={caption}>
      <table class="table">
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((each) => (
              <th key={each.name} scope="col" class={each.isNumber ? "number" : ""} aria-sort={sorted(each.name)}>
                {onOrder && each.canSort ? (
                  <button type="button" class="sort" onClick={() => press(each.name)}>
                    {each.label} <Icon name={arrow(sorted(each.name))} size="s" />
                  </button>
                ) : (
                  each.label
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((each, place) =>
                place === 0 ? (
                  <th key={each.name} scope="row">
                    {each.cell(row)}
                  </th>
                ) : (
                  <td key={each.name} class={each.isNumber ? "number" : ""}>
                    {each.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function arrow(sorted: "ascending" | "descending" | undefined): IconName {
  return sorted === "ascending" ? "arrow-up" : sorted === "descending" ? "arrow-down" : "chevrons-up-down";
}

