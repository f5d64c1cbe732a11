// The views of a list: those that its model declares, then the person's own and shared ones, which the service stores as
// records of the model `view`.
import { signal } from "@preact/signals";
import { query } from "../../shared/router";
import { runOrPropose, inLanguage, type Meta, type Model, type Row, run } from "../api";
import { mayRun, modelOf } from "../models";
import { ownCondition } from "../ownership";
import { moveLocalViews } from "./move_local_views";
import { canonicalSearch, searchOfView, viewFields } from "./view_fields";

export interface View {
  id: string;
  name: string;
  /** The query string of the list's address, without the view. */
  search: string;
  isShared: boolean;
  /** Whether another person owns it, or the model declares it: it can be neither changed nor removed here. */
  isReadOnly: boolean;
  /** Whether the model declares it. */
  isDeclared: boolean;
  revision: number;
}

/** The name of the model that stores views. */
const VIEW_MODEL = "view";

/** The query parameter of an address that names a view. */
export const VIEW_PARAM = "view";

/** The view of all records in an address. An address without a view shows the first view that the model declares. */
export const ALL_RECORDS = "all";

const MAX_VIEWS = 200;

/** The views of the current list. */
export const views = signal<readonly View[]>([]);

/** The views that the model declares. */
export function declaredViews(model: Model): View[] {
  return (model.views ?? []).map(({ name, label, filter, order }) => {
    const search = searchOfView(model, { id: name, revision: 0, query: JSON.stringify({ filter, order }) });
    return { id: name, name: inLanguage(label, name), search, isShared: false, isReadOnly: true, isDeclared: true, revision: 0 };
  });
}

/** The address of the list of all records. */
export function addressOfAll(model: Model): string {
  return `/models/${model.name}${model.views?.length ? `?${VIEW_PARAM}=${ALL_RECORDS}` : ""}`;
}

/** The model `view`, if this person may use it. */
export function viewModel(meta: Meta): Model | undefined {
  const model = modelOf(meta, VIEW_MODEL);
  return model && mayRun(model, "list") ? model : undefined;
}

/** Load the person's own views and shared ones. The query names the owner, because administrators may read all views. */
export async function loadViews(meta: Meta, model: Model, abortSignal: AbortSignal): Promise<void> {
  if (!viewModel(meta)) {
    return;
  }
  const ownerCondition = (await ownCondition(meta, abortSignal)) ?? { field: "shared", op: "eq", value: false };
  const readViews = async (...conditions: object[]) => {
    const filter = [{ field: "model", op: "eq", value: model.name }, ...conditions];
    return (await run<Row[]>(VIEW_MODEL, "list", { filter, order: [{ field: "name", dir: "asc" }], limit: MAX_VIEWS }, abortSignal)).value;
  };
  const sharedRows = await readViews({ field: "shared", op: "eq", value: true });
  const ownRows = await readViews(ownerCondition);
  if (abortSignal.aborted) {
    return;
  }
  const sharedByOthers = sharedRows.filter((sharedRow) => !ownRows.some(({ id }) => id === sharedRow.id));
  const ownViews = ownRows.map((ownRow) => toView(model, ownRow, false));
  views.value = [...declaredViews(model), ...ownViews, ...sharedByOthers.map((row) => toView(model, row, true))];
  await moveLocalViews(meta, model.name, async (name, search) => {
    if (!ownViews.some((ownView) => ownView.name === name)) {
      await createView(model, name, search, false);
    }
  });
}

function toView(model: Model, row: Row, isReadOnly: boolean): View {
  const search = searchOfView(model, row);
  return { id: row.id, name: String(row["name"]), search, isShared: row["shared"] === true, isReadOnly, isDeclared: false, revision: row.revision };
}

/** Create a view. Return undefined if it waits for approval.
 *  @throws Problem if the service refuses it. */
async function createView(model: Model, name: string, search: string, isShared: boolean): Promise<View | undefined> {
  const result = await runOrPropose<Row>(VIEW_MODEL, "create", { model: model.name, name, ...viewFields(model, search), ...(isShared ? { shared: true } : {}) });
  return result.isDone ? putInViews(toView(model, result.value, false)) : undefined;
}

function putInViews(view: View): View {
  const isKnown = views.peek().some((other) => other.id === view.id);
  views.value = isKnown ? views.peek().map((other) => (other.id === view.id ? view : other)) : [...views.peek(), view];
  return view;
}

/** Save the address as a view of this name. An own view of this name is replaced.
 *  @throws Problem if the service refuses it. */
export async function saveView(model: Model, name: string, isShared: boolean): Promise<View | undefined> {
  const existingView = views.peek().find((view) => view.name === name && !view.isReadOnly);
  return existingView ? updateView(model, existingView, isShared) : createView(model, name, currentSearch(), isShared);
}

/** Update the view to the current address.
 *  @throws Problem if the service refuses it. */
export async function updateView(model: Model, view: View, isShared = view.isShared): Promise<View | undefined> {
  const sharedChange = isShared === view.isShared ? {} : { shared: isShared };
  const result = await runOrPropose<Row>(VIEW_MODEL, "update", { id: view.id, revision: view.revision, ...viewFields(model, currentSearch()), ...sharedChange });
  return result.isDone ? putInViews(toView(model, result.value, false)) : undefined;
}

/** Remove the view. The returned function creates it again.
 *  @throws Problem if the service refuses it. */
export async function removeView(model: Model, view: View): Promise<() => Promise<View | undefined>> {
  await runOrPropose(VIEW_MODEL, "delete", { id: view.id, revision: view.revision });
  views.value = views.peek().filter((other) => other.id !== view.id);
  return () => createView(model, view.name, view.search, view.isShared);
}

/** The query string of the address, without the view that it names. */
export function currentSearch(): string {
  const search = new URLSearchParams(query.value);
  search.delete(VIEW_PARAM);
  return search.toString();
}

/** The view that the address names. */
export function currentView(): View | undefined {
  const id = query.value.get(VIEW_PARAM);
  return views.value.find((view) => view.id === id);
}

/** Whether the address differs from the view. */
export function isViewChanged(model: Model, view: View): boolean {
  return canonicalSearch(model, currentSearch()) !== view.search;
}

/** The address of a view. For a declared view, the address has only the view's id. The list adds the view's query, which
 *  depends on the person and the day. */
export function addressOfView(modelName: string, view: View): string {
  return view.isDeclared ? `/models/${modelName}?${VIEW_PARAM}=${view.id}` : addressWithQuery(modelName, view);
}

/** The address of a view with its query. */
export function addressWithQuery(modelName: string, view: View): string {
  return `/models/${modelName}?${VIEW_PARAM}=${encodeURIComponent(view.id)}${view.search ? `&${view.search}` : ""}`;
}
