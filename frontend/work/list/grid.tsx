// A grid with virtual scrolling: only visible rows are rendered; the keyboard reaches all (ARIA practices, grid).
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Field, Meta, Model, Row } from "../api";
import { mayRun, twoLineColumns } from "../models";
import { isCoarse, isNarrow } from "../screen_size";
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
  /** Null if there is no command for selected records. */
  selection: RowSelection | null;
  onSort: (field: string, adds: boolean) => void;
  onOpen: (row: Row, index: number) => void;
  /** Saves a cell. If it returns false, the editor stays open. */
  onSave: (row: Row, field: Field, value: unknown) => Promise<boolean>;
}

export function Grid({ meta, model, columns: allColumns, rows, order, selection, onSort, onOpen, onSave }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const ownScrollTop = useRef(-1);
  const [top_px, setTop] = useState(0);
  const [view_px, setView] = useState(400);
  const [isScrolled, setScrolled] = useState(false);
  const [focused, setFocused] = useState<CellPosition>({ row: 0, column: 0 });
  const [edited, setEdited] = useState<{ row: Row; field: Field } | null>(null);
  const isTwoLines = isNarrow.value;
  const columns = isTwoLines ? twoLineColumns(model, allColumns) : allColumns;
  void rows.version.value;
  const layout = currentLayout();
  const rowCount = rows.extent;
  const row_px = isTwoLines ? TWO_LINES_PX : isCoarse ? COARSE_PX : layout.isRelaxed ? RELAXED_PX : ROW_PX;
  const sizes = { rows: rowCount, row_px, view_px };
  const [firstRow, lastRow] = visibleRows(Math.min(top_px, maxTop(sizes)), sizes);

  useLayoutEffect(() => {
    const grid = box.current;
    if (!grid) {
      return undefined;
    }
    const observer = new ResizeObserver(() => setView(grid.clientHeight - (isNarrow.peek() ? 0 : HEAD_PX)));
    observer.observe(grid);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => rows.loadVisible(firstRow, lastRow), [rows, firstRow, lastRow, rows.version.value]);

  const scrollTo = (to_px: number) => {
    const newTop_px = Math.max(0, Math.min(maxTop(sizes), to_px));
    setTop(newTop_px);
    if (box.current) {
      box.current.scrollTop = newTop_px / scrollRatio(sizes);
      ownScrollTop.current = box.current.scrollTop;
    }
  };
  const handleScroll = () => {
    setScrolled((box.current?.scrollLeft ?? 0) > 0);
    const scrollTop = box.current?.scrollTop ?? 0;
    if (scrollTop !== ownScrollTop.current) {
      ownScrollTop.current = -1;
      setTop(scrollTop * scrollRatio(sizes));
    }
  };
  useLayoutEffect(() => {
    // A different list starts at its first row. The focus stays on a heading that was used for sorting.
    scrollTo(0);
    setFocused((cell) => ({ ...cell, row: Math.min(cell.row, 0) }));
  }, [rows]);
  useLayoutEffect(() => {
    // The height of the rows has changed: keep the focused row visible.
    scrollTo(topToShow(Math.max(0, focused.row), 0, sizes));
  }, [row_px]);
  useLayoutEffect(() => {
    const grid = box.current;
    const handleWheel = (event: WheelEvent) => {
      // The scrollbar is scaled, so the browser would scroll too far.
      if (scrollRatio(sizes) > 1 && event.deltaMode === 0 && !event.ctrlKey && !event.shiftKey && event.deltaY) {
        event.preventDefault();
        scrollTo(top_px + event.deltaY);
      }
    };
    grid?.addEventListener("wheel", handleWheel, { passive: false });
    return () => grid?.removeEventListener("wheel", handleWheel);
  });

  const focusCell = (cell: CellPosition) => {
    setFocused(cell);
    if (cell.row >= 0) {
      scrollTo(topToShow(cell.row, top_px, sizes));
    }
    const headers = box.current?.querySelectorAll<HTMLElement>('[role="columnheader"]');
    const [column, firstHeader, grid] = [headers?.[cell.column], headers?.[0], box.current];
    if (column && firstHeader && grid && cell.column > 0) {
      // Otherwise the sticky column would cover this one.
      const covered = getComputedStyle(firstHeader).position === "sticky" ? firstHeader.offsetWidth : 0;
      const [columnLeft, columnRight] = [column.offsetLeft - covered, column.offsetLeft + column.offsetWidth];
      grid.scrollLeft = columnLeft < grid.scrollLeft ? columnLeft : Math.max(grid.scrollLeft, columnRight - grid.clientWidth);
    } else if (grid) {
      grid.scrollLeft = 0;
    }
  };
  const canEdit = (field: Field) =>
    mayRun(model, "update") && !field.readonly && !field.masked && !["longtext", "structure"].includes(field.kind);
  const edit = (cell: CellPosition) => {
    const [row, field] = [rows.at(cell.row), columns[cell.column]];
    if (row && field && canEdit(field)) {
      setEdited({ row, field });
    }
  };
  const resize = (field: Field, key: string): boolean => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (step !== undefined) {
      const head = box.current?.querySelector<HTMLElement>(`#cell--1-${focused.column}`);
      const rem_px = parseFloat(getComputedStyle(document.documentElement).fontSize);
      const startWidth_px = layout.widths.get(field.name) ?? (head ? head.offsetWidth / rem_px : width_rem(model, field, layout));
      setColumnWidth(layout, field.name, startWidth_px + step);
    }
    return step !== undefined;
  };
  const handleSelectionKey = (event: KeyboardEvent, row: number): boolean => {
    if (!selection) {
      return false;
    }
    if (event.key === " ") {
      selection.toggle(row, event.shiftKey);
    } else if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey)) {
      selection.selectAll();
    } else if (event.key === "Escape") {
      selection.clear();
    } else {
      return false;
    }
    return true;
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.target !== box.current || event.altKey) {
      return;
    }
    const field = columns[focused.column];
    const row = rows.at(focused.row);
    if (focused.row < 0 && event.shiftKey && field && resize(field, event.key)) {
      event.preventDefault();
      return;
    }
    const nextCell = cellAfterKey(focused, event, { rows: rowCount, columns: columns.length, page: Math.max(1, Math.floor(view_px / row_px) - 1) });
    if (nextCell) {
      focusCell(nextCell);
    } else if (event.key === "Enter" && focused.row < 0 && field) {
      onSort(field.name, event.shiftKey);
    } else if (event.key === "Enter" && row) {
      onOpen(row, focused.row);
    } else if (event.key === "F2") {
      edit(focused);
    } else if (!handleSelectionKey(event, focused.row)) {
      return;
    }
    event.preventDefault();
  };
  const closeEditor = () => {
    setEdited(null);
    box.current?.focus();
  };
  const rowIndexes = Array.from({ length: Math.max(0, lastRow - firstRow + 1) }, (_, offset) => firstRow + offset);
  const { columns: widths, minWidth } = gridTemplate(model, columns, layout);
  const totalRows = rows.total.value ?? 0;
  const selectedCount = selection?.selectedRows.size ?? 0;
  const template = isTwoLines ? {} : { gridTemplateColumns: widths };
  const lineClasses = isTwoLines ? lineClassesOf(columns) : [];
  const offset_px = (box.current?.scrollTop ?? 0) - top_px;
  return (
    <div
      class={["grid", isTwoLines && "two-lines", isScrolled && "scrolled", !isTwoLines && layout.isRelaxed && "relaxed"].filter(Boolean).join(" ")}
      ref={box}
      role="grid"
      tabIndex={0}
      aria-label={t("grid", { model: model.plural })}
      aria-multiselectable={selection !== null || undefined}
      aria-rowcount={rows.total.value === null ? -1 : rows.total.value + 1}
      aria-colcount={columns.length}
      aria-activedescendant={focused.row < 0 || rowIndexes.includes(focused.row) ? `cell-${focused.row}-${focused.column}` : undefined}
      onScroll={handleScroll}
      onKeyDown={handleKeyDown}
    >
      <div role="rowgroup" class={isTwoLines ? "hidden-text" : "grid-head"} style={isTwoLines ? {} : { minWidth }}>
        <GridHeader
          {...{ model, columns, order, layout, onSort }}
          template={widths}
          focusedColumn={focused.row < 0 ? focused.column : -1}
          onFocusColumn={(column) => setFocused({ row: -1, column })}
          selected={selectedCount === 0 ? "" : selectedCount < totalRows ? "some" : "all"}
          onSelectAll={selection && (() => (selectedCount > 0 ? selection.clear() : selection.selectAll()))}
        />
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${scrollHeight(sizes)}px`, ...(isTwoLines ? {} : { minWidth }) }}>
        {rowIndexes.map((index) => {
          const row = rows.at(index);
          const isSelected = row !== undefined && selection !== null && selection.selectedRows.has(row.id);
          return (
            <div
              key={index}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={selection ? isSelected : undefined}
              class={["grid-row", focused.row === index && "focused", isSelected && "picked"].filter(Boolean).join(" ")}
              style={{ ...template, height: `${row_px}px`, transform: `translateY(${index * row_px + offset_px}px)` }}
            >
              {columns.map((field, column) => (
                <Cell
                  key={field.name}
                  {...{ meta, model, field, row, column }}
                  rowIndex={index}
                  isFocused={focused.row === index && focused.column === column}
                  isFrozen={!isTwoLines && layout.isFrozen && column === 0}
                  lineClass={lineClasses[column]}
                  onPress={() => setFocused({ row: index, column })}
                  onEdit={() => edit({ row: index, column })}
                  {...(selection && column === 0 ? { onSelect: (isRange: boolean) => selection.toggle(index, isRange) } : {})}
                >
                  {edited && edited.row.id === row?.id && edited.field.name === field.name && (
                    <CellEditor {...{ meta, field, row: edited.row, onSave, onDone: closeEditor }} />
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
function lineClassesOf(columns: readonly Field[]): string[] {
  const lastColumn = columns.at(-1);
  const isAmount = (field: Field) => field === columns[1] && ["money", "number", "date"].includes(field.kind);
  let factCount = 0;
  return columns.map((field, index) => {
    if (index === 0) {
      return "line-name";
    }
    return isAmount(field) ? "line-amount" : field === lastColumn && field.kind === "select" ? "line-state" : ((factCount += 1), factCount === 1 ? "line-fact" : "line-more");
  });
}
