// What stands below the list while records are picked: how many, and what can be done with all of them.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { number, translator } from "../../shared/i18n";
import type { Meta, Model } from "../api";
import { changeable, type Wanted, wanted } from "./bulk";
import { Bulk } from "./bulk_dialog";
import { MOST_PICKED, type Picking } from "./picking";
import type { Rows } from "./rows";

const t = translator("list");

interface Props {
  meta: Meta;
  model: Model;
  rows: Rows;
  picking: Picking;
}

export function PickedBar({ meta, model, rows, picking }: Props) {
  const all: Wanted[] = [
    ...changeable(model).map((field) => ({
      command: "update",
      label: t("bulk.change", { label: field.label }),
      inputs: [field.name],
      fits: (several: readonly unknown[]) => several.length,
    })),
    ...wanted(model, t("bulk.delete")),
  ];
  const [at, setAt] = useState("0");
  const [open, setOpen] = useState<Wanted | null>(null);
  const count = picking.picked.size;
  const there = rows.total.value;
  if (count === 0 && !open) {
    return null;
  }
  return (
    <section class="panel-box picked-bar row" aria-label={t("picked")}>
      <strong role="status">{t("picked.n", { n: number(count) })}</strong>
      {(there === null || (there > count && count < MOST_PICKED)) && (
        <Button tight onClick={picking.pickAll}>
          {t("pick.all", { n: there === null ? "" : number(Math.min(there, MOST_PICKED)) })}
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
      {open && <Bulk {...{ meta, model, rows, picking, wanted: open }} onClose={() => setOpen(null)} />}
    </section>
  );
}
