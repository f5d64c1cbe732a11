// The dashboards of the model groups, and the dashboards that people have saved. Each covers a chosen period.
import { useMemo, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { Empty, RequestResult } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { useRequest } from "../../shared/request";
import { go, query, setQuery } from "../../shared/router";
import { showToast } from "../../shared/toast";
import { translator } from "../../shared/i18n";
import type { Meta, Model } from "../api";
import { EditBar } from "../dashboard/edit_bar";
import { addressWith, type Board, BoardSelect, Choices, ownerFieldOf } from "../dashboard/dashboard_header";
import { periodOf, type Period } from "../dashboard/periods";
import { createDashboard, type DashboardChange, dashboardModel, loadDashboards, removeDashboard, type SavedDashboard, updateDashboard } from "../dashboard/saved_dashboards";
import { measuresOf } from "../dashboard/series";
import { countedFields, defaultTiles, type Tile } from "../dashboard/tile";
import { TileGrid } from "../dashboard/tile_grid";
import { businessModels, mayRun } from "../models";
import { moduleGroups } from "../shell/navigation";
import type { Condition } from "../values/operators";
import "../dashboard/dashboard.css";

const t = translator("dashboard");

function boardsOf(meta: Meta): Board[] {
  const countedModels = businessModels(meta).filter((businessModel) => mayRun(businessModel, "count_by") && countedFields(businessModel).length > 0);
  const inGroup = (name: string) => countedModels.filter((model) => (model.group ?? model.module) === name);
  return moduleGroups(meta)
    .map(({ name, label }) => ({ name, label, models: inGroup(name) }))
    .filter((group) => group.models.length > 0)
    .toSorted((a, b) => weightOf(b) - weightOf(a));
}

/** The largest number of measures of any of the models. Dashboards with a higher weight come first. */
function weightOf({ models }: Board): number {
  return Math.max(...models.map((model) => measuresOf(model).length));
}

export function Dashboard({ meta }: { meta: Meta }) {
  const boards = boardsOf(meta);
  const dashboardsRequest = useRequest((signal) => loadDashboards(meta, signal), [meta], { keepsPrevious: true });
  const savedDashboards = dashboardsRequest.state === "loaded" ? dashboardsRequest.value : [];
  const dashboardId = query.value.get("dashboard");
  const savedDashboard = savedDashboards.find((savedDashboard) => savedDashboard.id === dashboardId);
  const board = boards.find((board) => board.name === query.value.get("board")) ?? boards[0];
  const name = query.value.get("period") ?? "12w";
  const period = periodOf(name, query.value.get("from"), query.value.get("to"));
  const isEdited = savedDashboard?.isOwn === true && query.value.get("edit") === "1";
  const models = savedDashboard ? modelsOf(meta, savedDashboard) : (board?.models ?? []);
  const tab = (label: string, parameters: { board?: string; dashboard?: string }, isCurrent: boolean, isShared = false) => (
    <a key={label + Object.values(parameters)[0]} class="board-tab" href={addressWith(parameters)} aria-current={isCurrent ? "page" : undefined}>
      {isShared && <Icon name="users" size="s" />}
      {label}
    </a>
  );
  return (
    <>
      <Heading title={t("title")}>
        <nav class="board-tabs" aria-label={t("title")}>
          {boards.map((other) => tab(other.label, { board: other.name }, !savedDashboard && other === board))}
          {savedDashboards.map((saved) => tab(saved.name, { dashboard: saved.id }, saved === savedDashboard, saved.isShared))}
        </nav>
        {board && <BoardSelect {...{ boards, savedDashboards: savedDashboards }} currentBoard={savedDashboard ? `dashboard=${savedDashboard.id}` : `board=${board.name}`} />}
        <span class="right" />
        <Choices {...{ meta, models, name, period }}>
          {!isEdited && (savedDashboard || board) && <EditButton {...{ meta, own: savedDashboard }} name={savedDashboard?.name ?? board?.label ?? ""} tiles={() => savedDashboard?.tiles ?? defaultTiles(board?.models ?? [])} onMade={dashboardsRequest.reload} />}
        </Choices>
      </Heading>
      {dashboardId && !savedDashboard ? (
        <RequestResult request={dashboardsRequest}>{() => <Empty icon="layout-dashboard" title={t("missing")} />}</RequestResult>
      ) : savedDashboard && isEdited ? (
        <DashboardEditor key={savedDashboard.id} {...{ meta, period }} board={savedDashboard} onChanged={dashboardsRequest.reload} />
      ) : savedDashboard ? (
        <DashboardTiles key={savedDashboard.id + savedDashboard.revision} {...{ meta, period }} tiles={savedDashboard.tiles} />
      ) : board ? (
        <Standard key={board.name} {...{ meta, board, period }} />
      ) : (
        <Empty icon="layout-dashboard" title={t("empty")} />
      )}
    </>
  );
}

function modelsOf(meta: Meta, board: SavedDashboard): Model[] {
  const names = new Set(board.tiles.map((tile) => tile.model));
  return businessModels(meta).filter((businessModel) => names.has(businessModel.name));
}

interface EditButtonProps {
  meta: Meta;
  own: SavedDashboard | undefined;
  name: string;
  tiles: () => Tile[];
  onMade: () => void;
}

/** Edits a dashboard of your own. For any other dashboard, creates your own copy and edits the copy. */
function EditButton({ meta, own, name, tiles, onMade }: EditButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const model = dashboardModel(meta);
  const isOwn = own?.isOwn === true;
  if (!model || !mayRun(model, isOwn ? "update" : "create")) {
    return null;
  }
  const edit = async () => {
    if (isOwn) {
      setQuery({ edit: "1" }, { replaces: false });
      return;
    }
    setBusy(true);
    await runOrShowProblem(async () => {
      const dashboard = await createDashboard(t("copy.name", { name }), tiles());
      if (dashboard) {
        onMade();
        go(`${addressWith({ dashboard: dashboard.id })}&edit=1`);
      }
    });
    setBusy(false);
  };
  return (
    <Button tight id="edit-board" busy={isBusy} onClick={() => void edit()}>
      <Icon name={isOwn ? "pencil" : "copy"} size="s" />
      {t(isOwn ? "edit" : "copy")}
    </Button>
  );
}

/** Run the action. If it fails, show the problem as a toast and return false. */
async function runOrShowProblem(action: () => Promise<void>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    showToast(Problem.from(error).message);
    return false;
  }
}

function Standard({ meta, board, period }: { meta: Meta; board: Board; period: Period }) {
  const tiles = useMemo(() => defaultTiles(board.models), [board.name]);
  return <DashboardTiles {...{ meta, tiles, period }} />;
}

interface ShownProps {
  meta: Meta;
  tiles: readonly Tile[];
  period: Period;
  onChange?: (tiles: Tile[]) => void;
}

function DashboardTiles({ meta, tiles, period, onChange }: ShownProps) {
  const owner = query.value.get("owner") ?? "";
  const filterOf = (model: Model): Condition[] => {
    const field = ownerFieldOf(meta, model);
    return owner && field ? [{ field: field.name, op: "eq", value: owner }] : [];
  };
  return tiles.length === 0 ? <Empty icon="layout-dashboard" title={t("no.tiles")} /> : <TileGrid {...{ meta, tiles, period, filterOf, onChange }} />;
}

function DashboardEditor({ meta, board, period, onChanged }: { meta: Meta; board: SavedDashboard; period: Period; onChanged: () => void }) {
  const [draft, setDraft] = useState<DashboardChange>(board);
  const [isBusy, setBusy] = useState(false);
  const leave = (changes: Record<string, string>) => {
    onChanged();
    setQuery({ edit: "", ...changes });
  };
  const save = async () => {
    setBusy(true);
    const isSaved = await runOrShowProblem(() => updateDashboard(board, { ...draft, name: draft.name.trim() }));
    setBusy(false);
    if (isSaved) {
      showToast(t("saved"));
      leave({});
    }
  };
  const remove = async () => {
    if (await runOrShowProblem(() => removeDashboard(board))) {
      showToast(t("removed", { name: board.name }));
      leave({ dashboard: "" });
    }
  };
  return (
    <>
      <EditBar {...{ meta, board, draft, isBusy }} onChange={setDraft} onSave={() => void save()} onCancel={() => setQuery({ edit: "" })} onRemove={() => void remove()} />
      <DashboardTiles {...{ meta, period }} tiles={draft.tiles} onChange={(tiles) => setDraft((lastDraft) => ({ ...lastDraft, tiles }))} />
    </>
  );
}
