// Computes the visible rows of a very long list. Browsers limit the height of an element, so above that limit the
// scrollbar is scaled: it represents the whole list, while the wheel still scrolls by its normal distance.

export const ROW_PX = 30;
export const RELAXED_PX = 36;
/** The height of a row on a touch screen. */
export const COARSE_PX = 44;
/** The height of a row with two lines, on a phone. */
export const TWO_LINES_PX = 64;
const MAX_HEIGHT_PX = 12_000_000;

export interface Sizes {
  rows: number;
  row_px: number;
  view_px: number;
}

export function scrollHeight({ rows, row_px }: Sizes): number {
  return Math.min(rows * row_px, MAX_HEIGHT_PX);
}

/** The number of pixels of the list for one pixel of the scrollbar. */
export function scrollRatio(sizes: Sizes): number {
  const scrollRange_px = scrollHeight(sizes) - sizes.view_px;
  return scrollRange_px > 0 ? Math.max(1, (sizes.rows * sizes.row_px - sizes.view_px) / scrollRange_px) : 1;
}

export function maxTop({ rows, row_px, view_px }: Sizes): number {
  return Math.max(0, rows * row_px - view_px);
}

/** The first and last visible row, with some rows around them. */
export function visibleRows(top_px: number, { rows, row_px, view_px }: Sizes, extraRows = 6): readonly [number, number] {
  const firstRow = Math.floor(top_px / row_px) - extraRows;
  const lastRow = Math.ceil((top_px + view_px) / row_px) + extraRows;
  return [Math.max(0, firstRow), Math.min(rows - 1, lastRow)];
}

/** The scroll position, nearest to the present one, at which the whole row is visible. */
export function topToShow(row: number, top_px: number, { row_px, view_px }: Sizes): number {
  const rowTop_px = row * row_px;
  return rowTop_px < top_px ? rowTop_px : rowTop_px + row_px > top_px + view_px ? rowTop_px + row_px - view_px : top_px;
}
