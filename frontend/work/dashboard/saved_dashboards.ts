// The dashboards that people have arranged: the person's own and shared dashboards. The service stores them.
import { runOrPropose, type Meta, type Model, type Row, run } from "../api";
import { mayRun, modelOf } from "../models";
import { ownCondition } from "../ownership";
import { parseTiles, type Tile, tilesText } from "./tile";

export interface SavedDashboard {
  id: string;
  name: string;
  isShared: boolean;
  /** Whether the dashboard is this person's own and can be changed. */
  isOwn: boolean;
  tiles: Tile[];
  revision: number;
}

const DASHBOARD = "dashboard";
const MAX_DASHBOARDS = 200;

/** The model of dashboards, if this person may have dashboards. */
export function dashboardModel(meta: Meta): Model | undefined {
  const model = modelOf(meta, DASHBOARD);
  return model && mayRun(model, "list") ? model : undefined;
}

/** The person's own dashboards and shared dashboards. The query names the owner, because administrators may read all
 *  dashboards. */
export async function loadDashboards(meta: Meta, signal: AbortSignal): Promise<SavedDashboard[]> {
  if (!dashboardModel(meta)) {
    return [];
  }
  const ofMe = (await ownCondition(meta, signal)) ?? { field: "shared", op: "eq", value: false };
  const readDashboards = async (condition: object) =>
    (await run<Row[]>(DASHBOARD, "list", { filter: [condition], order: [{ field: "name", dir: "asc" }], limit: MAX_DASHBOARDS }, signal)).value;
  const [ownDashboards, sharedDashboards] = await Promise.all([readDashboards(ofMe), readDashboards({ field: "shared", op: "eq", value: true })]);
  const foreignDashboards = sharedDashboards.filter((sharedDashboard) => !ownDashboards.some(({ id }) => id === sharedDashboard.id));
  return [...ownDashboards.map((ownDashboard) => toDashboard(ownDashboard, true)), ...foreignDashboards.map((foreignDashboard) => toDashboard(foreignDashboard, false))];
}

function toDashboard(row: Row, isOwn: boolean): SavedDashboard {
  const tiles = parseTiles(row["tiles"] === null ? null : String(row["tiles"] ?? ""));
  return { id: row.id, name: String(row["name"]), isShared: row["shared"] === true, isOwn, tiles, revision: row.revision };
}

/** Create a dashboard. Return undefined if it waits for approval.
 *  @throws Problem if the service refuses it. */
export async function createDashboard(name: string, tiles: readonly Tile[]): Promise<SavedDashboard | undefined> {
  const outcome = await runOrPropose<Row>(DASHBOARD, "create", { name, tiles: tilesText(tiles) });
  return outcome.isDone ? toDashboard(outcome.value, true) : undefined;
}

export interface DashboardChange {
  name: string;
  tiles: readonly Tile[];
  isShared: boolean;
}

/** @throws Problem if the service refuses it. */
export async function updateDashboard(board: SavedDashboard, { name, tiles, isShared }: DashboardChange): Promise<void> {
  const sharing = isShared === board.isShared ? {} : { shared: isShared };
  await runOrPropose<Row>(DASHBOARD, "update", { id: board.id, revision: board.revision, name, tiles: tilesText(tiles), ...sharing });
}

/** @throws Problem if the service refuses it. */
export async function removeDashboard(board: SavedDashboard): Promise<void> {
  await runOrPropose(DASHBOARD, "delete", { id: board.id, revision: board.revision });
}
