// A cell of the grid with its value. The cell with the title links to the record.
import type { ComponentChildren } from "preact";
import type { Field, Meta, Model, Row } from "../api";
import { mayRun, titleOf } from "../models";
import { formatAmount } from "../values/money";
import { Value } from "../values/value";
import { addressInList } from "./list_position";

interface Props {
  meta: Meta;
  model: Model;
  field: Field;
  row: Row | undefined;
  rowIndex: number;
  column: number;
  isFocused: boolean;
  isFrozen: boolean;
  /** The CSS class for the position of the cell in a row of two lines, which phones show. */
  lineClass?: string | undefined;
  onPress: () => void;
  onEdit: () => void;
  /** Selects the row, or with Shift all rows from the last selected one. */
  onSelect?: (isRange: boolean) => void;
  /** The editor while the cell is edited. */
  children: ComponentChildren;
}

export function Cell({ meta, model, field, row, rowIndex, column, isFocused, isFrozen, lineClass, onPress, onEdit, onSelect, children }: Props) {
  const isNumber = ["number", "money", "decimal"].includes(field.kind) && !field.masked;
  const classes = ["cell", isFocused && "focused", isNumber && "number", isFrozen && "frozen", Boolean(children) && "edited", lineClass];
  return (
    <div
      id={`cell-${rowIndex}-${column}`}
      role="gridcell"
      aria-colindex={column + 1}
      class={classes.filter(Boolean).join(" ")}
      onClick={onPress}
      onDblClick={onEdit}
    >
      {onSelect && row && !children && (
        <span
          class="pick"
          aria-hidden="true"
          onDblClick={(event) => event.stopPropagation()}
          onClick={(event) => onSelect(event.shiftKey)}
        />
      )}
      {children || <CellContent {...{ meta, model, field, row, rowIndex, column, lineClass }} />}
    </div>
  );
}

type ContentProps = Pick<Props, "meta" | "model" | "field" | "row" | "rowIndex" | "column" | "lineClass">;

function CellContent({ meta, model, field, row, rowIndex, column, lineClass }: ContentProps) {
  if (!row) {
    return <span class="skeleton" />;
  }
  const content = row[field.name];
  if (lineClass !== undefined && field.kind === "money" && typeof content === "number") {
    // Phones show no column headings, so the amount has its currency.
    return formatAmount(content, field.currency);
  }
  const value = <Value meta={meta} field={field} value={content} isCell />;
  if (column > 0 || field.kind === "ref" || !mayRun(model, "get")) {
    return value;
  }
  return (
    <a href={addressInList(model, row.id, rowIndex)} tabIndex={-1}>
      {content ? value : titleOf(model, row)}
    </a>
  );
}
