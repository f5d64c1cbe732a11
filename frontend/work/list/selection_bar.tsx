// The bar that is shown while records are selected: their number, and the commands for all of them.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { number, translator } from "../../shared/i18n";
import { type Meta, type Model } from "../api";
import { may, workflowField } from "../models";
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
  /** Saves the selected records. */
  onExport: (ids: string[]) => void;
}

export function SelectionBar({ meta, model, rows, picking, onExport }: Props) {
  const [open, setOpen] = useState<BulkCommand | null>(null);
  const count = picking.picked.size;
  const there = rows.total.value;
  if (count === 0 && !open) {
    return null;
  }
  const edits = bulkEditableFields(model).map((field) => ({
    field,
    command: "update",
    label: t("bulk.change", { label: field.label }),
    inputs: [field.name],
    fits: (several: readonly unknown[]) => several.length,
  }));
  const owner = edits.find(({ field }) => field.ref === "user");
  const all = bulkCommands(model, t("bulk.delete"));
  const actions = all.filter((each) => each.command !== "delete");
  const removal = all.find((each) => each.command === "delete");
  return (
    <section class="bulk-bar" aria-label={t("picked")}>
      <strong role="status">{t("picked.n", { n: number(count) })}</strong>
      {(there === null || (there > count && count < MOST_SELECTED)) && (
        <Button tight onClick={picking.pickAll}>
          {t("pick.all", { n: there === null ? "" : number(Math.min(there, MOST_SELECTED)) })}
        </Button>
      )}
      <span class="tooth" />
      {actions.length > 0 && <Menu tight label={workflowField(model)?.label ?? t("bulk.what")} items={actions.map((each) => ({ label: each.label, does: () => setOpen(each) }))} />}
      {owner && (
        <Button tight onClick={() => setOpen(owner)}>
          <Icon name="user" size="s" />
          {owner.field.label}
        </Button>
      )}
      {edits.length > 0 && <Menu tight label={t("bulk.edit")} items={edits.map((each) => ({ label: each.field.label, does: () => setOpen(each) }))} />}
      {may(model, "export") && (
        <Button tight onClick={() => onExport([...picking.picked.keys()])}>
          <Icon name="download" size="s" />
          {t("export")}
        </Button>
      )}
      {removal && (
        <Button tight look="risky" onClick={() => setOpen(removal)}>
          <Icon name="trash-2" size="s" />
          {removal.label}
        </Button>
      )}
      <span class="tooth" />
      <Button size="square tight" aria-label={t("pick.none")} title={t("pick.none")} onClick={picking.clear}>
        <Icon name="x" size="s" />
      </Button>
      {open && <BulkDialog {...{ meta, model, rows, picking, wanted: open }} onClose={() => setOpen(null)} />}
    </section>
  );
}
