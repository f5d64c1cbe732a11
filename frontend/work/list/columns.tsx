// The panel that chooses and orders the columns of a list.
import { Button } from "../../shared/components/button";
import type { Field, Model } from "../api";
import { ID } from "../models";
import { setRelaxed, setFrozen, setColumnWidth, currentLayout, width_rem } from "./layout";
import { setColumns } from "./query";
import { translator } from "../../shared/i18n";

const t = translator("list");

export function Columns({ model, columns }: { model: Model; columns: readonly Field[] }) {
  const rest = [...model.fields, ID].filter((each) => !columns.some((shown) => shown.name === each.name));
  const toggle = (field: Field, isShown: boolean) =>
    setColumns(isShown ? [...columns, field] : columns.filter((each) => each.name !== field.name));
  const move = (place: number, by: number) => {
    const next = [...columns];
    const [taken] = next.splice(place, 1);
    if (taken) {
      next.splice(place + by, 0, taken);
    }
    setColumns(next);
  };
  const now = currentLayout();
  const widen = (field: Field, by: number) => setColumnWidth(now, field.name, width_rem(model, field, now) + by);
  return (
    <div class="stack tight">
      <div class="row">
        <label class="row tick">
          <input type="checkbox" checked={now.isFrozen} onChange={(event) => setFrozen(event.currentTarget.checked)} />
          {t("columns.freeze")}
        </label>
        <label class="row tick">
          <input type="checkbox" checked={now.isRelaxed} onChange={(event) => setRelaxed(event.currentTarget.checked)} />
          {t("columns.relaxed")}
        </label>
      </div>
      <p class="small quiet">{t("columns.text")}</p>
      <ul class="columns">
        {columns.map((field, place) => (
          <li key={field.name} class="row">
            <Ticked field={field} isShown onChange={toggle} isFixed={columns.length === 1} />
            <Button tight look="plain" aria-label={t("columns.narrow", { label: field.label })} onClick={() => widen(field, -1)}>
              −
            </Button>
            <Button tight look="plain" aria-label={t("columns.wide", { label: field.label })} onClick={() => widen(field, 1)}>
              +
            </Button>
            {now.widths.has(field.name) && (
              <Button tight look="plain" aria-label={t("columns.free", { label: field.label })} onClick={() => setColumnWidth(now, field.name, null)}>
                ↺
              </Button>
            )}
            <Button tight look="plain" disabled={place === 0} aria-label={t("columns.up", { label: field.label })} onClick={() => move(place, -1)}>
              ↑
            </Button>
            <Button
              tight
              look="plain"
              disabled={place === columns.length - 1}
              aria-label={t("columns.down", { label: field.label })}
              onClick={() => move(place, 1)}
            >
              ↓
            </Button>
          </li>
        ))}
        {rest.map((field) => (
          <li key={field.name} class="row">
            <Ticked field={field} isShown={false} onChange={toggle} isFixed={false} />
          </li>
        ))}
      </ul>
    </div>
  );
}

interface TickedProps {
  field: Field;
  isShown: boolean;
  isFixed: boolean;
  onChange: (field: Field, isShown: boolean) => void;
}

function Ticked({ field, isShown, isFixed, onChange }: TickedProps) {
  return (
    <label class="row tick">
      <input
        type="checkbox"
        checked={isShown}
        disabled={isFixed}
        onChange={(event) => onChange(field, event.currentTarget.checked)}
      />
      {field.label}
    </label>
  );
}
