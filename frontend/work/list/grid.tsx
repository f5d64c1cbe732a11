// A grid with virtual scrolling: only visible rows are rendered; the keyboard reaches all (ARIA practices, grid).
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Field, Meta, Model, Row } from "../api";
import { may, twoLineColumns } from "../models";
import { isCoarse, isNarrow } from "../narrow";
import { Cell } from "./cell";
import { CellEditor } from "./cell_editor";
import { GridHeader } from "./grid_header";
import { type CellPosition, cellAfterKey } from "./grid_navigation";
import { setColumnWidth, currentLayout, gridTemplate, width_rem } from "./layout";
import type { RowSelection } from "./selection";
import type { SortKey } from "./query";
import type { Rows } from "./rows";
import { COARSE_PX, RELAXED_PX, scrollHeight, visibleRows, maxTop, scrollRatio, ROW_PX, topToShow, TWO_LINES_PX } from "./virtual_scroll";
import { translator } from "../../shared/i18n";

const t = translator("list");

const HEAD_PX = 30;

interface Props {
  meta: Meta;
  model: Model;
  columns: readonly Field[];
  rows: Rows;
  order: readonly SortKey[];
  /** Null if there is no command for picked records. */
  picking: RowSelection | null;
  onOrder: (field: string, adds: boolean) => void;
  onOpen: (row: Row) => void;
  /** Called when a row is pressed or opened. */
  onRow: (row: Row, index: number) => void;
  /** Saves a cell. If it returns false, the editor stays open. */
  onSave: (row: Row, field: Field, value: unknown) => Promise<boolean>;
}

export function Grid({ meta, model, columns: all, rows, order, picking, onOrder, onOpen, onRow, onSave }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const own = useRef(-1);
  const [top_px, setTop] = useState(0);
  const [view_px, setView] = useState(400);
  const [isScrolled, setScrolled] = useState(false);
  const [at, setAt] = useState<CellPosition>({ row: 0, column: 0 });
  const [edited, setEdited] = useState<{ row: Row; field: Field } | null>(null);
  const isTwoLines = isNarrow.value;
  const columns = isTwoLines ? twoLineColumns(model, all) : all;
  void rows.version.value;
  const now = currentLayout();
  const count = rows.extent;
  const row_px = isTwoLines ? TWO_LINES_PX : isCoarse ? COARSE_PX : now.isRelaxed ? RELAXED_PX : ROW_PX;
  const sizes = { rows: count, row_px, view_px };
  const [first, last] = visibleRows(Math.min(top_px, maxTop(sizes)), sizes);

  useLayoutEffect(() => {
    const grid = box.current;
    if (!grid) {
      return undefined;
    }
    const watch = new ResizeObserver(() => setView(grid.clientHeight - (isNarrow.peek() ? 0 : HEAD_PX)));
    watch.observe(grid);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => rows.want(first, last), [rows, first, last, rows.version.value]);

  const scroll = (to_px: number) => {
    const next = Math.max(0, Math.min(maxTop(sizes), to_px));
    setTop(next);
    if (box.current) {
      box.current.scrollTop = next / scrollRatio(sizes);
      own.current = box.current.scrollTop;
    }
  };
  const scrolled = () => {
    setScrolled((box.current?.scrollLeft ?? 0) > 0);
    const said = box.current?.scrollTop ?? 0;
    if (said !== own.current) {
      own.current = -1;
      setTop(said * scrollRatio(sizes));
    }
  };
  useLayoutEffect(() => {
    // A different list starts at its first row. The focus stays on a heading that was used for sorting.
    scroll(0);
    setAt((last) => ({ ...last, row: Math.min(last.row, 0) }));
  }, [rows]);
  useLayoutEffect(() => {
    // The height of the rows has changed: keep the focused row visible.
    scroll(topToShow(Math.max(0, at.row), 0, sizes));
  }, [row_px]);
  useLayoutEffect(() => {
    const grid = box.current;
    const turned = (event: WheelEvent) => {
      // The scrollbar is scaled, so the browser would scroll too far.
      if (scrollRatio(sizes) > 1 && event.deltaMode === 0 && !event.ctrlKey && !event.shiftKey && event.deltaY) {
        event.preventDefault();
        scroll(top_px + event.deltaY);
      }
    };
    grid?.addEventListener("wheel", turned, { passive: false });
    return () => grid?.removeEventListener("wheel", turned);
  });

  const go = (to: CellPosition) => {
    setAt(to);
    if (to.row >= 0) {
      scroll(topToShow(to.row, top_px, sizes));
    }
    const heads = box.current?.querySelectorAll<HTMLElement>('[role="columnheader"]');
    const [column, front, grid] = [heads?.[to.column], heads?.[0], box.current];
    if (column && front && grid && to.column > 0) {
      // Otherwise the sticky column would cover this one.
      const covered = getComputedStyle(front).position === "sticky" ? front.offsetWidth : 0;
      const [left, right] = [column.offsetLeft - covered, column.offsetLeft + column.offsetWidth];
      grid.scrollLeft = left < grid.scrollLeft ? left : Math.max(grid.scrollLeft, right - grid.clientWidth);
    } else if (grid) {
      grid.scrollLeft = 0;
    }
  };
  const canEdit = (field: Field) =>
    may(model, "update") && !field.readonly && !field.masked && !["longtext", "structure"].includes(field.kind);
  const edit = (to: CellPosition) => {
    const [row, field] = [rows.at(to.row), columns[to.column]];
    if (row && field && canEdit(field)) {
      setEdited({ row, field });
    }
  };
  const resize = (field: Field, key: string): boolean => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (by !== undefined) {
      const head = box.current?.querySelector<HTMLElement>(`#cell--1-${at.column}`);
      const rem_px = parseFloat(getComputedStyle(document.documentElement).fontSize);
      const from = now.widths.get(field.name) ?? (head ? head.offsetWidth / rem_px : width_rem(model, field, now));
      setColumnWidth(now, field.name, from + by);
    }
    return by !== undefined;
  };
  const pick = (event: KeyboardEvent, row: number): boolean => {
    if (!picking) {
      return false;
    }
    if (event.key === " ") {
      picking.pick(row, event.shiftKey);
    } else if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey)) {
      picking.pickAll();
    } else if (event.key === "Escape") {
      picking.clear();
    } else {
      return false;
    }
    return true;
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.target !== box.current || event.altKey) {
      return;
    }
    const field = columns[at.column];
    const row = rows.at(at.row);
    if (at.row < 0 && event.shiftKey && field && resize(field, event.key)) {
      event.preventDefault();
      return;
    }
    const to = cellAfterKey(at, event, { rows: count, columns: columns.length, page: Math.max(1, Math.floor(view_px / row_px) - 1) });
    if (to) {
      go(to);
    } else if (event.key === "Enter" && at.row < 0 && field) {
      onOrder(field.name, event.shiftKey);
    } else if (event.key === "Enter" && row) {
      onRow(row, at.row);
      onOpen(row);
    } else if (event.key === "F2") {
      edit(at);
    } else if (!pick(event, at.row)) {
      return;
    }
    event.preventDefault();
  };
  const done = () => {
    setEdited(null);
    box.current?.focus();
  };
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => first + place);
  const { columns: widths, least } = gridTemplate(model, columns, now);
  const there = rows.total.value ?? 0;
  const pickedCount = picking?.picked.size ?? 0;
  const template = isTwoLines ? {} : { gridTemplateColumns: widths };
  const parts = isTwoLines ? partsOf(columns) : [];
  const offset_px = (box.current?.scrollTop ?? 0) - top_px;
  return (
    <div
      class={["grid", isTwoLines && "two-lines", isScrolled && "scrolled", !isTwoLines && now.isRelaxed && "relaxed"].filter(Boolean).join(" ")}
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label={t("grid", { model: model.plural })}
      aria-multiselectable={picking !== null || undefined}
      aria-rowcount={rows.total.value === null ? -1 : rows.total.value + 1}
      aria-colcount={columns.length}
      aria-activedescendant={at.row < 0 || shown.includes(at.row) ? `cell-${at.row}-${at.column}` : undefined}
      onScroll={scrolled}
      onKeyDown={keyed}
    >
      <div role="rowgroup" class={isTwoLines ? "hidden-text" : "grid-head"} style={isTwoLines ? {} : { minWidth: least }}>
        <GridHeader
          {...{ model, columns, order, now, onOrder }}
          template={widths}
          at={at.row < 0 ? at.column : -1}
          onAt={(column) => setAt({ row: -1, column })}
          picked={pickedCount === 0 ? "" : pickedCount < there ? "some" : "all"}
          onPickAll={picking && (() => (pickedCount > 0 ? picking.clear() : picking.pickAll()))}
        />
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${scrollHeight(sizes)}px`, ...(isTwoLines ? {} : { minWidth: least }) }}>
        {shown.map((index) => {
          const row = rows.at(index);
          const isPicked = row !== undefined && picking !== null && picking.picked.has(row.id);
          return (
            <div
              key={index}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={picking ? isPicked : undefined}
              class={["grid-row", at.row === index && "at", isPicked && "picked"].filter(Boolean).join(" ")}
              style={{ ...template, height: `${row_px}px`, transform: `translateY(${index * row_px + offset_px}px)` }}
            >
              {columns.map((field, column) => (
                <Cell
                  key={field.name}
                  {...{ meta, model, field, row, index, column }}
                  isAt={at.row === index && at.column === column}
                  isFrozen={!isTwoLines && now.isFrozen && column === 0}
                  part={parts[column]}
                  onPress={() => (setAt({ row: index, column }), row && onRow(row, index))}
                  onEdit={() => edit({ row: index, column })}
                  {...(picking && column === 0 ? { onPick: (extends_: boolean) => picking.pick(index, extends_) } : {})}
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

/** The position of each cell in a row of two lines. */
function partsOf(columns: readonly Field[]): string[] {
  const state = columns.at(-1);
  const isAmount = (field: Field) => field === columns[1] && ["money", "number", "date"].includes(field.kind);
  let facts = 0;
  return columns.map((field, place) => {
    if (place === 0) {
      return "line-name";
    }
    return isAmount(field) ? "line-amount" : field === state && field.kind === "select" ? "line-state" : ((facts += 1), facts === 1 ? "line-fact" : "line-more");
  });
}
