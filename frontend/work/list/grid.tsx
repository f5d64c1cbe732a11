// A grid over as many rows as there are: only those in sight exist, and the keyboard reaches all (ARIA practices, grid).
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { number } from "../../shared/words";
import type { Field, Meta, Model, Row } from "../api";
import { may } from "../models";
import { Cell } from "./cell";
import { CellEditor } from "./cell_editor";
import { type At, moved } from "./keys";
import { type Key, canOrder } from "./query";
import type { Rows } from "./rows";
import { say } from "./say";
import { height, inSight, lowest, ratio, ROW_PX, showing } from "./window";

const HEAD_PX = 44;

interface Props {
  meta: Meta;
  model: Model;
  columns: readonly Field[];
  rows: Rows;
  order: readonly Key[];
  onOrder: (field: string, adds: boolean) => void;
  onOpen: (row: Row) => void;
  /** Save a cell; false keeps the editor open. */
  onSave: (row: Row, field: Field, value: unknown) => Promise<boolean>;
}

export function Grid({ meta, model, columns, rows, order, onOrder, onOpen, onSave }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const own = useRef(-1);
  const [top_px, setTop] = useState(0);
  const [view_px, setView] = useState(400);
  const [at, setAt] = useState<At>({ row: 0, column: 0 });
  const [edited, setEdited] = useState<{ row: Row; field: Field } | null>(null);
  void rows.version.value;
  const count = rows.extent;
  const sizes = { rows: count, view_px };
  const [first, last] = inSight(Math.min(top_px, lowest(sizes)), sizes);

  useLayoutEffect(() => {
    const grid = box.current;
    if (!grid) {
      return undefined;
    }
    const watch = new ResizeObserver(() => setView(grid.clientHeight - HEAD_PX));
    watch.observe(grid);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => rows.want(first, last), [rows, first, last, rows.version.value]);

  const scroll = (to_px: number) => {
    const next = Math.max(0, Math.min(lowest(sizes), to_px));
    setTop(next);
    if (box.current) {
      box.current.scrollTop = next / ratio(sizes);
      own.current = box.current.scrollTop;
    }
  };
  const scrolled = () => {
    const said = box.current?.scrollTop ?? 0;
    if (said !== own.current) {
      own.current = -1;
      setTop(said * ratio(sizes));
    }
  };
  useLayoutEffect(() => {
    // Another list begins at its first row; who sorts by a heading stays on it.
    scroll(0);
    setAt((last) => ({ ...last, row: Math.min(last.row, 0) }));
  }, [rows]);
  useLayoutEffect(() => {
    const grid = box.current;
    const turned = (event: WheelEvent) => {
      // Scaled, the browser would move by more than the wheel says.
      if (ratio(sizes) > 1 && event.deltaMode === 0 && !event.ctrlKey && !event.shiftKey && event.deltaY) {
        event.preventDefault();
        scroll(top_px + event.deltaY);
      }
    };
    grid?.addEventListener("wheel", turned, { passive: false });
    return () => grid?.removeEventListener("wheel", turned);
  });

  const go = (to: At) => {
    setAt(to);
    if (to.row >= 0) {
      scroll(showing(to.row, top_px, view_px));
    }
    const column = box.current?.querySelectorAll<HTMLElement>('[role="columnheader"]')[to.column];
    const grid = box.current;
    if (column && grid) {
      const [left, right] = [column.offsetLeft, column.offsetLeft + column.offsetWidth];
      grid.scrollLeft = left < grid.scrollLeft ? left : Math.max(grid.scrollLeft, right - grid.clientWidth);
    }
  };
  const canEdit = (field: Field) =>
    may(model, "update") && !field.readonly && !field.masked && !["longtext", "structure"].includes(field.kind);
  const edit = (to: At) => {
    const [row, field] = [rows.at(to.row), columns[to.column]];
    if (row && field && canEdit(field)) {
      setEdited({ row, field });
    }
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.target !== box.current || event.altKey) {
      return;
    }
    const field = columns[at.column];
    const row = rows.at(at.row);
    const to = moved(at, event, { rows: count, columns: columns.length, page: Math.max(1, Math.floor(view_px / ROW_PX) - 1) });
    if (to) {
      go(to);
    } else if (event.key === "Enter" && at.row < 0 && field) {
      onOrder(field.name, event.shiftKey);
    } else if (event.key === "Enter" && row) {
      onOpen(row);
    } else if (event.key === "F2") {
      edit(at);
    } else {
      return;
    }
    event.preventDefault();
  };
  const done = () => {
    setEdited(null);
    box.current?.focus();
  };
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => first + place);
  const widths = columns.map((each) => width_rem(each) + (each.name === model.shown_as ? 5 : 0));
  const template = widths.map((each) => `minmax(${each}rem, ${each}fr)`).join(" ");
  const least = `${widths.reduce((sum, each) => sum + each, 0)}rem`;
  const offset_px = (box.current?.scrollTop ?? 0) - top_px;
  const sorted = (field: Field) => order.find((each) => each.field === field.name);
  return (
    <div
      class="grid"
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label={say("grid", { model: model.plural })}
      aria-rowcount={rows.total.value === null ? -1 : rows.total.value + 1}
      aria-colcount={columns.length}
      aria-activedescendant={at.row < 0 || shown.includes(at.row) ? `cell-${at.row}-${at.column}` : undefined}
      onScroll={scrolled}
      onKeyDown={keyed}
    >
      <div role="rowgroup" class="grid-head" style={{ minWidth: least }}>
        <div role="row" aria-rowindex={1} class="grid-row" style={{ gridTemplateColumns: template }}>
          {columns.map((field, column) => (
            <div
              key={field.name}
              id={`cell--1-${column}`}
              role="columnheader"
              aria-colindex={column + 1}
              aria-sort={direction(sorted(field))}
              class={at.row < 0 && at.column === column ? "cell head at" : "cell head"}
              onClick={(event) => (setAt({ row: -1, column }), canOrder(field) && onOrder(field.name, event.shiftKey))}
            >
              {field.label}
              {sorted(field) && (
                <span aria-hidden="true">
                  {sorted(field)?.dir === "desc" ? " ↓" : " ↑"}
                  {order.length > 1 && <sup>{number(order.findIndex((each) => each.field === field.name) + 1)}</sup>}
                </span>
              )}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${height(count)}px`, minWidth: least }}>
        {shown.map((index) => {
          const row = rows.at(index);
          return (
            <div
              key={index}
              role="row"
              aria-rowindex={index + 2}
              class={at.row === index ? "grid-row at" : "grid-row"}
              style={{ gridTemplateColumns: template, transform: `translateY(${index * ROW_PX + offset_px}px)` }}
            >
              {columns.map((field, column) => (
                <Cell
                  key={field.name}
                  {...{ meta, model, field, row, index, column }}
                  isAt={at.row === index && at.column === column}
                  onPress={() => setAt({ row: index, column })}
                  onEdit={() => edit({ row: index, column })}
                >
                  {edited && edited.row.id === row?.id && edited.field.name === field.name && (
                    <CellEditor {...{ meta, field, row: edited.row, onSave, onDone: done }} />
                  )}
                </Cell>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function direction(key: Key | undefined): "ascending" | "descending" | undefined {
  return key && (key.dir === "desc" ? "descending" : "ascending");
}

function width_rem(field: Field): number {
  const narrow: Record<string, number> = { bool: 6, number: 7, money: 8, date: 8, select: 8 };
  return (!field.masked && narrow[field.kind]) || 11;
}
