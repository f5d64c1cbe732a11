// The bar below the list while records are selected: how many, and the commands for all of them.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { number, translator } from "../../shared/i18n";
import type { Meta, Model } from "../api";
import { bulkEditableFields, type BulkCommand, bulkCommands } from "./bulk";
import { BulkDialog } from "./bulk_dialog";
import { MOST_SELECTED, type RowSelection } from "./selection";
import type { Rows } from "./rows";

const t = translator("list");

interface Props {
  meta: Meta;
  model: Model;
  rows: Rows;
  picking: RowSelection;
}

export function SelectionBar({ meta, model, rows, picking }: Props) {
  const all: BulkCommand[] = [
    ...bulkEditableFields(model).map((field) => ({
      command: "update",
      label: t("bulk.change", { label: field.label }),
      inputs: [field.name],
      fits: (several: readonly unknown[]) => several.length,
    })),
    ...bulkCommands(model, t("bulk.delete")),
  ];
  const [at, setAt] = useState("0");
  const [open, setOpen] = useState<BulkCommand | null>(null);
  const count = picking.picked.size;
  const there = rows.total.value;
  if (count === 0 && !open) {
    return null;
  }
  return (
    <section class="panel-box picked-bar row" aria-label={t("picked")}>
      <strong role="status">{t("picked.n", { n: number(count) })}</strong>
      {(there === null || (there > count && count < MOST_SELECTED)) && (
        <Button tight onClick={picking.pickAll}>
          {t("pick.all", { n: there === null ? "" : number(Math.min(there, MOST_SELECTED)) })}
        </Button>
      )}
      <Button tight look="plain" onClick={picking.clear}>
        {t("pick.none")}
      </Button>
      <SelectField
        name="bulk"
        label={t("bulk.what")}
        value={at}
        onChange={setAt}
        options={all.map((each, place) => [String(place), each.label])}
      />
      <Button onClick={() => setOpen(all[Number(at)] ?? null)}>{t("bulk.preview")}</Button>
      {open && <BulkDialog {...{ meta, model, rows, picking, wanted: open }} onClose={() => setOpen(null)} />}
    </section>
  );
}
