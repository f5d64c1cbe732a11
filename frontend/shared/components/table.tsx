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
  const sortOf = (name: string) =>
    order?.field === name ? (order.dir === "asc" ? ("ascending" as const) : ("descending" as const)) : undefined;
  const press = (name: string) =>
    onOrder?.({ field: name, dir: order?.field === name && order.dir === "asc" ? "desc" : "asc" });
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={caption}>
      <table class="table">
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={column.isNumber ? "number" : ""} aria-sort={sortOf(column.name)}>
                {onOrder && column.canSort ? (
                  <button type="button" class="sort" onClick={() => press(column.name)}>
                    {column.label} <Icon name={arrow(sortOf(column.name))} size="s" />
                  </button>
                ) : (
                  column.label
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column, index) =>
                index === 0 ? (
                  <th key={column.name} scope="row">
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.name} class={column.isNumber ? "number" : ""}>
                    {column.cell(row)}
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

function arrow(direction: "ascending" | "descending" | undefined): IconName {
  return direction === "ascending" ? "arrow-up" : direction === "descending" ? "arrow-down" : "chevrons-up-down";
}

