// What a record is, at a glance, before it is chosen: its usual fields that say something.
import type { Meta, Model, Row } from "../api";
import { usual } from "../models";
import { Value } from "./value";

const SHOWN = 5;

export function Card({ meta, model, row, id }: { meta: Meta; model: Model; row: Row; id: string }) {
  const told = usual(model).filter((each) => each.name !== model.shown_as && row[each.name] !== null && row[each.name] !== "");
  return (
    <dl class="ref-card facts small" id={id}>
      {told.slice(0, SHOWN).map((field) => (
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
