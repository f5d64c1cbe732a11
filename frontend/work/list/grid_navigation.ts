// Keyboard navigation in a grid (ARIA authoring practices, grid).

export interface CellPosition {
  /** The row, or -1 for the headings. */
  row: number;
  column: number;
}

interface Bounds {
  rows: number;
  columns: number;
  /** The number of rows that PageUp and PageDown move. */
  page: number;
}

type PressedKey = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey">;

/** The two rows in ascending order. */
export function orderedRange(a: number, b: number): readonly [number, number] {
  return a < b ? [a, b] : [b, a];
}

/** The cell that a key moves to, or null if the key does not move. */
export function cellAfterKey(cell: CellPosition, { key, ctrlKey, metaKey }: PressedKey, { rows, columns, page }: Bounds): CellPosition | null {
  const hasModifier = ctrlKey || metaKey;
  const clampedCell = (row: number, column: number): CellPosition => ({
    row: Math.max(-1, Math.min(rows - 1, row)),
    column: Math.max(0, Math.min(columns - 1, column)),
  });
  switch (key) {
    case "ArrowDown":
      return clampedCell(cell.row + 1, cell.column);
    case "ArrowUp":
      return clampedCell(cell.row - 1, cell.column);
    case "ArrowRight":
      return clampedCell(cell.row, cell.column + 1);
    case "ArrowLeft":
      return clampedCell(cell.row, cell.column - 1);
    case "PageDown":
      return clampedCell(cell.row + page, cell.column);
    case "PageUp":
      return clampedCell(Math.max(0, cell.row - page), cell.column);
    case "Home":
      return hasModifier ? clampedCell(0, 0) : clampedCell(cell.row, 0);
    case "End":
      return hasModifier ? clampedCell(rows - 1, columns - 1) : clampedCell(cell.row, columns - 1);
    default:
      return null;
  }
}
