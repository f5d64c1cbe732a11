// A short summary of a record in the record picker: its main fields that have a value.
import type { Meta, Model, Row } from "../api";
import { defaultColumns } from "../models";
import { Value } from "./value";

const MAX_SHOWN = 5;

export function RecordCard({ meta, model, row, id }: { meta: Meta; model: Model; row: Row; id: string }) {
  const filledColumns = defaultColumns(model).filter((defaultColumn) => defaultColumn.name !== model.shown_as && row[defaultColumn.name] !== null && row[defaultColumn.name] !== "");
  return (
    <dl class="ref-card facts small" id={id}>
      {filledColumns.slice(0, MAX_SHOWN).map((field) => (
        <div key={field.name} class="fact">
          <dt>{field.label}</dt>
          <dd>
            <Value meta={meta} field={field} value={row[field.name]} isCell />
          </dd>
        </div>
      ))}
    </dl>
  );
}
