// The headings of a grid. Pressing one sorts by it; dragging its edge changes the width.
import { Icon } from "../../shared/components/icon";
import { number } from "../../shared/i18n";
import type { Field, Model } from "../api";
import { setColumnWidth, type Layout } from "./layout";
import { canOrder, type SortKey } from "./query";

interface Props {
  model: Model;
  columns: readonly Field[];
  order: readonly SortKey[];
  now: Layout;
  template: string;
  /** The focused column, or -1 if the focus is in a row below. */
  at: number;
  onAt: (column: number) => void;
  onOrder: (field: string, adds: boolean) => void;
  /** Whether no records, some, or all are picked. */
  picked: "" | "some" | "all";
  onPickAll: (() => void) | null;
}

export function GridHeader({ columns, order, now, template, at, onAt, onOrder, picked, onPickAll }: Props) {
  const sorted = (field: Field) => order.find((each) => each.field === field.name);
  return (
    <div role="row" aria-rowindex={1} class="grid-row" style={{ gridTemplateColumns: template }}>
      {columns.map((field, column) => {
        const key = sorted(field);
        const isNumber = ["number", "money"].includes(field.kind) && !field.masked;
        const classes = ["cell", "head", isNumber && "number", at === column && "at", now.isFrozen && column === 0 && "frozen"].filter(Boolean);
        return (
          <div
            key={field.name}
            id={`cell--1-${column}`}
            role="columnheader"
            aria-colindex={column + 1}
            aria-sort={key && (key.dir === "desc" ? "descending" : "ascending")}
            class={classes.join(" ")}
            onClick={(event) => (onAt(column), canOrder(field) && onOrder(field.name, event.shiftKey))}
          >
            {column === 0 && onPickAll && (
              <span class={`pick ${picked}`} aria-hidden="true" onClick={(event) => (event.stopPropagation(), onPickAll())} />
            )}
            {field.label}
            {key && (
              <span class="sorted" aria-hidden="true">
                <Icon name={key.dir === "desc" ? "arrow-down" : "arrow-up"} size="s" />
                {order.length > 1 && <sup>{number(order.indexOf(key) + 1)}</sup>}
              </span>
            )}
            <Edge name={field.name} now={now} />
          </div>
        );
      })}
    </div>
  );
}

type Pulling = PointerEvent & { currentTarget: HTMLSpanElement };

/** The edge for the mouse. With the keyboard, Shift and the arrow keys or the panel of columns change the width. */
function Edge({ name, now }: { name: string; now: Layout }) {
  const pull = (event: Pulling) => {
    const edge = event.currentTarget;
    const head = edge.parentElement;
    if (!head) {
      return;
    }
    event.preventDefault();
    edge.setPointerCapture(event.pointerId);
    const rem_px = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const from_px = event.clientX - head.offsetWidth;
    edge.onpointermove = (moved) => setColumnWidth(now, name, (moved.clientX - from_px) / rem_px);
    edge.onpointerup = () => {
      edge.onpointermove = null;
      edge.onpointerup = null;
    };
  };
  return <span class="edge" aria-hidden="true" onPointerDown={pull} onClick={(event) => event.stopPropagation()} />;
}
