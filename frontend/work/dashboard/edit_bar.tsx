// The bar above a dashboard in edit mode: rename the dashboard, share it, add tiles, delete it, and save or cancel.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { fieldOf, mayRun } from "../models";
import { AddTile } from "./add_tile";
import { dashboardModel, type DashboardChange, type SavedDashboard } from "./saved_dashboards";
import { MAX_TILES, newTile } from "./tile";

const t = translator("dashboard");

interface Props {
  meta: Meta;
  board: SavedDashboard;
  draft: DashboardChange;
  isBusy: boolean;
  onChange: (draft: DashboardChange) => void;
  onSave: () => void;
  onCancel: () => void;
  onRemove: () => void;
}

export function EditBar({ meta, board, draft, isBusy, onChange, onSave, onCancel, onRemove }: Props) {
  const [isAdding, setAdding] = useState(false);
  const [isRemoving, setRemoving] = useState(false);
  const model = dashboardModel(meta);
  const canShare = fieldOf(model, "shared")?.readonly === false;
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    onSave();
  };
  return (
    <>
      <form class="board-edit" onSubmit={save}>
        <input class="input tight" id="board-name" aria-label={t("name")} value={draft.name} maxLength={100} required onInput={(event) => onChange({ ...draft, name: event.currentTarget.value })} />
        {canShare && (
          <label class="row tick">
            <input type="checkbox" checked={draft.isShared} onChange={(event) => onChange({ ...draft, isShared: event.currentTarget.checked })} />
            {t("share")}
          </label>
        )}
        <Button tight disabled={draft.tiles.length >= MAX_TILES} onClick={() => setAdding(true)}>
          <Icon name="plus" size="s" />
          {t("add")}
        </Button>
        <span class="right" />
        {model && mayRun(model, "delete") && (
          <Button tight variant="plain" onClick={() => setRemoving(true)}>
            {t("remove")}
          </Button>
        )}
        <Button tight onClick={onCancel}>
          {t("cancel")}
        </Button>
        <Button tight type="submit" variant="strong" busy={isBusy}>
          {t("save")}
        </Button>
      </form>
      <AddTile
        {...{ meta }}
        isOpen={isAdding}
        onClose={() => setAdding(false)}
        onAdd={(tile) => (onChange({ ...draft, tiles: [...draft.tiles, newTile(tile)] }), setAdding(false))}
      />
      <Dialog
        title={t("remove.title", { name: board.name })}
        isOpen={isRemoving}
        isCautious
        onClose={() => setRemoving(false)}
        actions={
          <Button variant="risky" onClick={onRemove}>
            {t("remove.do")}
          </Button>
        }
      >
        <p>{t(board.isShared ? "remove.shared" : "remove.text")}</p>
      </Dialog>
    </>
  );
}
