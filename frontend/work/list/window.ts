// Which rows of a very long list are in sight. No browser lets an element be as high as a million rows, so beyond a
// limit the scrollbar is scaled: it stands for the whole list, while the rows move by as much as the wheel says.

export const ROW_PX = 40;
const HIGHEST_PX = 12_000_000;

export interface Sizes {
  rows: number;
  view_px: number;
}

export function height(rows: number): number {
  return Math.min(rows * ROW_PX, HIGHEST_PX);
}

/** How many pixels of the list one pixel of the scrollbar stands for. */
export function ratio({ rows, view_px }: Sizes): number {
  const inside = height(rows) - view_px;
  return inside > 0 ? Math.max(1, (rows * ROW_PX - view_px) / inside) : 1;
}

export function lowest({ rows, view_px }: Sizes): number {
  return Math.max(0, rows * ROW_PX - view_px);
}

/** First and last row in sight, with some around them. */
export function inSight(top_px: number, { rows, view_px }: Sizes, around = 6): readonly [number, number] {
  const first = Math.floor(top_px / ROW_PX) - around;
  const last = Math.ceil((top_px + view_px) / ROW_PX) + around;
  return [Math.max(0, first), Math.min(rows - 1, last)];
}

/** Where the list has to stand for a row to be seen whole, moved as little as can be. */
export function showing(row: number, top_px: number, view_px: number): number {
  const from = row * ROW_PX;
  return from < top_px ? from : from + ROW_PX > top_px + view_px ? from + ROW_PX - view_px : top_px;
}
