// The headings of a grid. Pressing one sorts by it; dragging its edge changes the width.
import { Icon } from "../../shared/components/icon";
import { number } from "../../shared/i18n";
import type { Field, Model } from "../api";
import { currencySymbol } from "../values/money";
import { setColumnWidth, type Layout } from "./layout";
import { canOrder, type SortKey } from "./query";

interface Props {
  model: Model;
  columns: readonly Field[];
  order: readonly SortKey[];
  layout: Layout;
  template: string;
  /** The focused column, or -1 if the focus is in a row below. */
  focusedColumn: number;
  onFocusColumn: (column: number) => void;
  onSort: (field: string, adds: boolean) => void;
  /** Whether no records, some, or all are selected. */
  selected: "" | "some" | "all";
  onSelectAll: (() => void) | null;
}

export function GridHeader({ columns, order, layout, template, focusedColumn, onFocusColumn, onSort, selected, onSelectAll }: Props) {
  const sortKeyOf = (field: Field) => order.find((sortKey) => sortKey.field === field.name);
  return (
    <div role="row" aria-rowindex={1} class="grid-row" style={{ gridTemplateColumns: template }}>
      {columns.map((field, column) => {
        const key = sortKeyOf(field);
        const isNumber = ["number", "money", "decimal"].includes(field.kind) && !field.masked;
        const classes = ["cell", "head", isNumber && "number", focusedColumn === column && "focused", layout.isFrozen && column === 0 && "frozen"].filter(Boolean);
        return (
          <div
            key={field.name}
            id={`cell--1-${column}`}
            role="columnheader"
            aria-colindex={column + 1}
            aria-sort={key && (key.dir === "desc" ? "descending" : "ascending")}
            class={classes.join(" ")}
            onClick={(event) => (onFocusColumn(column), canOrder(field) && onSort(field.name, event.shiftKey))}
          >
            {column === 0 && onSelectAll && (
              <span class={`pick ${selected}`} aria-hidden="true" onClick={(event) => (event.stopPropagation(), onSelectAll())} />
            )}
            {field.label}
            {field.kind === "money" && field.currency && <span class="unit">{currencySymbol(field.currency)}</span>}
            {key && (
              <span class="sorted" aria-hidden="true">
                <Icon name={key.dir === "desc" ? "arrow-down" : "arrow-up"} size="s" />
                {order.length > 1 && <sup>{number(order.indexOf(key) + 1)}</sup>}
              </span>
            )}
            <ResizeEdge name={field.name} layout={layout} />
          </div>
        );
      })}
    </div>
  );
}

type EdgePointerEvent = PointerEvent & { currentTarget: HTMLSpanElement };

/** The edge of a heading, which is dragged with the mouse. With the keyboard, Shift and the arrow keys, or the panel
 *  of columns, change the width. */
function ResizeEdge({ name, layout }: { name: string; layout: Layout }) {
  const startResize = (event: EdgePointerEvent) => {
    const edge = event.currentTarget;
    const head = edge.parentElement;
    if (!head) {
      return;
    }
    event.preventDefault();
    edge.setPointerCapture(event.pointerId);
    const rem_px = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const from_px = event.clientX - head.offsetWidth;
    edge.onpointermove = (move) => setColumnWidth(layout, name, (move.clientX - from_px) / rem_px);
    edge.onpointerup = () => {
      edge.onpointermove = null;
      edge.onpointerup = null;
    };
  };
  return <span class="edge" aria-hidden="true" onPointerDown={startResize} onClick={(event) => event.stopPropagation()} />;
}
