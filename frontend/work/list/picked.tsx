// What stands below the list while records are picked: how many, and what can be done with all of them.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { number } from "../../shared/words";
import type { Meta, Model } from "../api";
import { changeable, type Wanted, wanted } from "./bulk";
import { Bulk } from "./bulk_dialog";
import { MOST_PICKED, type Picking } from "./picking";
import type { Rows } from "./rows";
import { say } from "./say";

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
      label: say("bulk.change", { label: field.label }),
      inputs: [field.name],
      fits: (several: readonly unknown[]) => several.length,
    })),
    ...wanted(model, say("bulk.delete")),
  ];
  const [at, setAt] = useState("0");
  const [open, setOpen] = useState<Wanted | null>(null);
  const count = picking.picked.size;
  const there = rows.total.value;
  if (count === 0 && !open) {
    return null;
  }
  return (
    <section class="panel-box picked-bar row" aria-label={say("picked")}>
      <strong role="status">{say("picked.n", { n: number(count) })}</strong>
      {(there === null || (there > count && count < MOST_PICKED)) && (
        <Button tight onClick={picking.pickAll}>
          {say("pick.all", { n: there === null ? "" : number(Math.min(there, MOST_PICKED)) })}
        </Button>
      )}
      <Button tight look="plain" onClick={picking.clear}>
        {say("pick.none")}
      </Button>
      <SelectField
        name="bulk"
        label={say("bulk.what")}
        value={at}
        onChange={setAt}
        options={all.map((each, place) => [String(place), each.label])}
      />
      <Button onClick={() => setOpen(all[Number(at)] ?? null)}>{say("bulk.preview")}</Button>
      {open && <Bulk {...{ meta, model, rows, picking, wanted: open }} onClose={() => setOpen(null)} />}
    </section>
  );
}
