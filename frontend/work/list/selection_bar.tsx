// The bar that is shown while records are selected: their number, and the commands for all of them.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { number, translator } from "../../shared/i18n";
import { type Meta, type Model } from "../api";
import { mayRun, workflowField } from "../models";
import { bulkEditableFields, type BulkCommand, bulkCommands } from "./bulk";
import { BulkDialog } from "./bulk_dialog";
import { MAX_SELECTED, type RowSelection } from "./selection";
import type { Rows } from "./rows";

const t = translator("list");

interface Props {
  meta: Meta;
  model: Model;
  rows: Rows;
  selection: RowSelection;
  /** Saves the selected records. */
  onExport: (ids: string[]) => void;
}

export function SelectionBar({ meta, model, rows, selection, onExport }: Props) {
  const [openCommand, setOpenCommand] = useState<BulkCommand | null>(null);
  const count = selection.selectedRows.size;
  const total = rows.total.value;
  if (count === 0 && !openCommand) {
    return null;
  }
  const edits = bulkEditableFields(model).map((field) => ({
    field,
    command: "update",
    label: t("bulk.change", { label: field.label }),
    inputs: [field.name],
    countAllowed: (selectedRows: readonly unknown[]) => selectedRows.length,
  }));
  const ownerEdit = edits.find(({ field }) => field.ref === "user");
  const commands = bulkCommands(model, t("bulk.delete"));
  const actions = commands.filter((command) => command.command !== "delete");
  const deletion = commands.find((command) => command.command === "delete");
  return (
    <section class="bulk-bar" aria-label={t("picked")}>
      <strong role="status">{t("picked.n", { n: number(count) })}</strong>
      {(total === null || (total > count && count < MAX_SELECTED)) && (
        <Button tight onClick={selection.selectAll}>
          {t("pick.all", { n: total === null ? "" : number(Math.min(total, MAX_SELECTED)) })}
        </Button>
      )}
      <span class="tooth" />
      {actions.length > 0 && <Menu tight label={workflowField(model)?.label ?? t("bulk.what")} items={actions.map((action) => ({ label: action.label, does: () => setOpenCommand(action) }))} />}
      {ownerEdit && (
        <Button tight onClick={() => setOpenCommand(ownerEdit)}>
          <Icon name="user" size="s" />
          {ownerEdit.field.label}
        </Button>
      )}
      {edits.length > 0 && <Menu tight label={t("bulk.edit")} items={edits.map((edit) => ({ label: edit.field.label, does: () => setOpenCommand(edit) }))} />}
      {mayRun(model, "export") && (
        <Button tight onClick={() => onExport([...selection.selectedRows.keys()])}>
          <Icon name="download" size="s" />
          {t("export")}
        </Button>
      )}
      {deletion && (
        <Button tight variant="risky" onClick={() => setOpenCommand(deletion)}>
          <Icon name="trash-2" size="s" />
          {deletion.label}
        </Button>
      )}
      <span class="tooth" />
      <Button size="square tight" aria-label={t("pick.none")} title={t("pick.none")} onClick={selection.clear}>
        <Icon name="x" size="s" />
      </Button>
      {openCommand && <BulkDialog {...{ meta, model, rows, selection, bulkCommand: openCommand }} onClose={() => setOpenCommand(null)} />}
    </section>
  );
}
