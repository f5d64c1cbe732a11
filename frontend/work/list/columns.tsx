// The panel that chooses and orders the columns of a list.
import { Button } from "../../shared/components/button";
import type { Field, Model } from "../api";
import { ID } from "../models";
import { setRelaxed, setFrozen, setColumnWidth, currentLayout, width_rem } from "./layout";
import { setColumns } from "./query";
import { translator } from "../../shared/i18n";

const t = translator("list");

export function Columns({ model, columns }: { model: Model; columns: readonly Field[] }) {
  const hiddenFields = [...model.fields, ID].filter((field) => !columns.some((column) => column.name === field.name));
  const toggle = (field: Field, isShown: boolean) =>
    setColumns(isShown ? [...columns, field] : columns.filter((column) => column.name !== field.name));
  const move = (index: number, steps: number) => {
    const newColumns = [...columns];
    const [movedColumn] = newColumns.splice(index, 1);
    if (movedColumn) {
      newColumns.splice(index + steps, 0, movedColumn);
    }
    setColumns(newColumns);
  };
  const layout = currentLayout();
  const widen = (field: Field, added_rem: number) => setColumnWidth(layout, field.name, width_rem(model, field, layout) + added_rem);
  return (
    <div class="stack tight">
      <div class="row">
        <label class="row tick">
          <input type="checkbox" checked={layout.isFrozen} onChange={(event) => setFrozen(event.currentTarget.checked)} />
          {t("columns.freeze")}
        </label>
        <label class="row tick">
          <input type="checkbox" checked={layout.isRelaxed} onChange={(event) => setRelaxed(event.currentTarget.checked)} />
          {t("columns.relaxed")}
        </label>
      </div>
      <p class="small quiet">{t("columns.text")}</p>
      <ul class="columns">
        {columns.map((field, index) => (
          <li key={field.name} class="row">
            <ColumnCheckbox field={field} isShown onChange={toggle} isDisabled={columns.length === 1} />
            <Button tight variant="plain" aria-label={t("columns.narrow", { label: field.label })} onClick={() => widen(field, -1)}>
              −
            </Button>
            <Button tight variant="plain" aria-label={t("columns.wide", { label: field.label })} onClick={() => widen(field, 1)}>
              +
            </Button>
            {layout.widths.has(field.name) && (
              <Button tight variant="plain" aria-label={t("columns.free", { label: field.label })} onClick={() => setColumnWidth(layout, field.name, null)}>
                ↺
              </Button>
            )}
            <Button tight variant="plain" disabled={index === 0} aria-label={t("columns.up", { label: field.label })} onClick={() => move(index, -1)}>
              ↑
            </Button>
            <Button
              tight
              variant="plain"
              disabled={index === columns.length - 1}
              aria-label={t("columns.down", { label: field.label })}
              onClick={() => move(index, 1)}
            >
              ↓
            </Button>
          </li>
        ))}
        {hiddenFields.map((field) => (
          <li key={field.name} class="row">
            <ColumnCheckbox field={field} isShown={false} onChange={toggle} isDisabled={false} />
          </li>
        ))}
      </ul>
    </div>
  );
}

interface ColumnCheckboxProps {
  field: Field;
  isShown: boolean;
  isDisabled: boolean;
  onChange: (field: Field, isShown: boolean) => void;
}

function ColumnCheckbox({ field, isShown, isDisabled, onChange }: ColumnCheckboxProps) {
  return (
    <label class="row tick">
      <input
        type="checkbox"
        checked={isShown}
        disabled={isDisabled}
        onChange={(event) => onChange(field, event.currentTarget.checked)}
      />
      {field.label}
    </label>
  );
}
