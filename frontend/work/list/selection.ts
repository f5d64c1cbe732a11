// The selected records of a list: by id, so that sorting, scrolling and other pages keep the selection.
import { useRef, useState } from "preact/hooks";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { number, translator } from "../../shared/i18n";
import type { Row } from "../api";
import { orderedRange } from "./grid_navigation";
import type { Rows } from "./rows";

const t = translator("list");

/** The maximum number of selected records: what the API returns in one answer. */
export const MAX_SELECTED = 5000;

export type SelectedRows = ReadonlyMap<string, Row>;

export interface RowSelection {
  selectedRows: SelectedRows;
  /** Select the row at this index, or deselect it. With `extends_`, select all rows from the last selected one. */
  toggle: (index: number, extends_: boolean) => void;
  /** Select all records that match the filter, also those that were not loaded yet. */
  selectAll: () => void;
  replace: (rows: SelectedRows) => void;
  clear: () => void;
}

export function useRowSelection(rows: Rows): RowSelection {
  const [selectedRows, setSelectedRows] = useState<SelectedRows>(new Map());
  const anchor = useRef(0);
  const selectRange = async (firstRow: number, lastRow: number) => {
    try {
      const loadedRows = await rows.load(firstRow, lastRow);
      setSelectedRows((selectedBefore) => {
        const newSelection = new Map([...selectedBefore, ...loadedRows.map((loadedRow) => [loadedRow.id, loadedRow] as const)].slice(0, MAX_SELECTED));
        return newSelection;
      });
    } catch (error) {
      showToast((Problem.from(error)).message);
    }
  };
  const toggle = (index: number, extends_: boolean) => {
    const row = rows.at(index);
    if (extends_) {
      const [firstRow, lastRow] = orderedRange(anchor.current, index);
      void selectRange(Math.max(0, firstRow), Math.min(lastRow, Math.max(0, firstRow) + MAX_SELECTED - 1));
    } else if (row) {
      const newSelection = new Map(selectedRows);
      if (!newSelection.delete(row.id) && newSelection.size < MAX_SELECTED) {
        newSelection.set(row.id, row);
      }
      setSelectedRows(newSelection);
    }
    anchor.current = index;
  };
  const selectAll = async () => {
    const total = rows.total.value;
    await selectRange(0, (total === null ? MAX_SELECTED : Math.min(MAX_SELECTED, total)) - 1);
    if (total !== null && total > MAX_SELECTED) {
      showToast(t("pick.most", { n: number(MAX_SELECTED), of: number(total) }));
    }
  };
  return { selectedRows, toggle, selectAll: () => void selectAll(), replace: setSelectedRows, clear: () => setSelectedRows(new Map()) };
}
