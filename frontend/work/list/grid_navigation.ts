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

type Pressed = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey">;

/** The two rows in ascending order. */
export function orderedRange(a: number, b: number): readonly [number, number] {
  return a < b ? [a, b] : [b, a];
}

/** The cell that a key moves to, or null if the key does not move. */
export function cellAfterKey(at: CellPosition, { key, ctrlKey, metaKey }: Pressed, { rows, columns, page }: Bounds): CellPosition | null {
  const isFar = ctrlKey || metaKey;
  const within = (row: number, column: number): CellPosition => ({
    row: Math.max(-1, Math.min(rows - 1, row)),
    column: Math.max(0, Math.min(columns - 1, column)),
  });
  switch (key) {
    case "ArrowDown":
      return within(at.row + 1, at.column);
    case "ArrowUp":
      return within(at.row - 1, at.column);
    case "ArrowRight":
      return within(at.row, at.column + 1);
    case "ArrowLeft":
      return within(at.row, at.column - 1);
    case "PageDown":
      return within(at.row + page, at.column);
    case "PageUp":
      return within(Math.max(0, at.row - page), at.column);
    case "Home":
      return isFar ? within(0, 0) : within(at.row, 0);
    case "End":
      return isFar ? within(rows - 1, columns - 1) : within(at.row, columns - 1);
    default:
      return null;
  }
}
