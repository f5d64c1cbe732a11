// The selected records of a list: by id, so that sorting, scrolling and other pages keep the selection.
import { useRef, useState } from "preact/hooks";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { number, translator } from "../../shared/i18n";
import type { Row } from "../api";
import { orderedRange } from "./grid_navigation";
import type { Rows } from "./rows";

const t = translator("list");

/** The maximum number of picked records: what the API returns in one answer. */
export const MOST_SELECTED = 5000;

export type SelectedRows = ReadonlyMap<string, Row>;

export interface RowSelection {
  picked: SelectedRows;
  /** Pick the row at this index, or unpick it. With `extends_`, pick all rows from the last picked one. */
  pick: (index: number, extends_: boolean) => void;
  /** Pick all records that match the filter, also those that were not loaded yet. */
  pickAll: () => void;
  put: (picked: SelectedRows) => void;
  clear: () => void;
}

export function useRowSelection(rows: Rows): RowSelection {
  const [picked, setPicked] = useState<SelectedRows>(new Map());
  const from = useRef(0);
  const take = async (first: number, last: number) => {
    try {
      const several = await rows.between(first, last);
      setPicked((before) => {
        const next = new Map([...before, ...several.map((each) => [each.id, each] as const)].slice(0, MOST_SELECTED));
        return next;
      });
    } catch (error) {
      showToast((Problem.from(error)).message);
    }
  };
  const pick = (index: number, extends_: boolean) => {
    const row = rows.at(index);
    if (extends_) {
      const [first, last] = orderedRange(from.current, index);
      void take(Math.max(0, first), Math.min(last, Math.max(0, first) + MOST_SELECTED - 1));
    } else if (row) {
      const next = new Map(picked);
      if (!next.delete(row.id) && next.size < MOST_SELECTED) {
        next.set(row.id, row);
      }
      setPicked(next);
    }
    from.current = index;
  };
  const pickAll = async () => {
    const there = rows.total.value;
    await take(0, (there === null ? MOST_SELECTED : Math.min(MOST_SELECTED, there)) - 1);
    if (there !== null && there > MOST_SELECTED) {
      showToast(t("pick.most", { n: number(MOST_SELECTED), of: number(there) }));
    }
  };
  return { picked, pick, pickAll: () => void pickAll(), put: setPicked, clear: () => setPicked(new Map()) };
}
