// Saved views of a list: one's own and the shared ones, kept by the service as records of the model `view`.
import { signal } from "@preact/signals";
import { query } from "../../shared/router";
import { attempt, type Meta, type Model, type Row, run } from "../api";
import { may, modelOf } from "../models";
import { ownCondition } from "../ownership";
import { moveKeptViews } from "./kept_views";
import { canonicalSearch, searchOfView, viewFields } from "./view_fields";

export interface View {
  id: string;
  name: string;
  /** The list's address after the question mark, without the view itself. */
  search: string;
  isShared: boolean;
  /** Another person's: it can be neither changed nor removed here. */
  isFixed: boolean;
  revision: number;
}

export const VIEW = "view";

const MOST = 200;

/** The views of the list in front. */
export const views = signal<readonly View[]>([]);

/** The model of views, where this person may have some. */
export function viewModel(meta: Meta): Model | undefined {
  const model = modelOf(meta, VIEW);
  return model && may(model, "list") ? model : undefined;
}

/** Read one's own views and the shared ones. Administrators may read everyone's, so the owner is part of the query. */
export async function loadViews(meta: Meta, model: Model, signal: AbortSignal): Promise<void> {
  if (!viewModel(meta)) {
    return;
  }
  const ofMe = (await ownCondition(meta, signal)) ?? { field: "shared", op: "eq", value: false };
  const read = async (...conditions: object[]) => {
    const filter = [{ field: "model", op: "eq", value: model.name }, ...conditions];
    return (await run<Row[]>(VIEW, "list", { filter, order: [{ field: "name", dir: "asc" }], limit: MOST }, signal)).value;
  };
  const shared = await read({ field: "shared", op: "eq", value: true });
  const own = await read(ofMe);
  if (signal.aborted) {
    return;
  }
  const others = shared.filter((each) => !own.some(({ id }) => id === each.id));
  const mine = own.map((each) => toView(model, each, false));
  views.value = [...mine, ...others.map((each) => toView(model, each, true))];
  await moveKeptViews(meta, model.name, async (name, search) => {
    if (!mine.some((each) => each.name === name)) {
      await createView(model, name, search, false);
    }
  });
}

function toView(model: Model, row: Row, isFixed: boolean): View {
  const search = searchOfView(model, row);
  return { id: row.id, name: String(row["name"]), search, isShared: row["shared"] === true, isFixed, revision: row.revision };
}

/** The new view; undefined where it waits for an approval.
 *  @throws Problem where the service refuses it. */
async function createView(model: Model, name: string, search: string, isShared: boolean): Promise<View | undefined> {
  const done = await attempt<Row>(VIEW, "create", { model: model.name, name, ...viewFields(model, search), ...(isShared ? { shared: true } : {}) });
  return done.isDone ? put(toView(model, done.value, false)) : undefined;
}

function put(view: View): View {
  const isKnown = views.peek().some((each) => each.id === view.id);
  views.value = isKnown ? views.peek().map((each) => (each.id === view.id ? view : each)) : [...views.peek(), view];
  return view;
}

/** Keep what the address says as a view of this name, in place of one's own that has it already.
 *  @throws Problem where the service refuses it. */
export async function saveView(model: Model, name: string, isShared: boolean): Promise<View | undefined> {
  const known = views.peek().find((each) => each.name === name && !each.isFixed);
  return known ? updateView(model, known, isShared) : createView(model, name, currentSearch(), isShared);
}

/** The view has what the address says from now on.
 *  @throws Problem where the service refuses it. */
export async function updateView(model: Model, view: View, isShared = view.isShared): Promise<View | undefined> {
  const sharing = isShared === view.isShared ? {} : { shared: isShared };
  const done = await attempt<Row>(VIEW, "update", { id: view.id, revision: view.revision, ...viewFields(model, currentSearch()), ...sharing });
  return done.isDone ? put(toView(model, done.value, false)) : undefined;
}

/** Remove the view; the answered function saves it anew.
 *  @throws Problem where the service refuses it. */
export async function removeView(model: Model, view: View): Promise<() => Promise<View | undefined>> {
  await attempt(VIEW, "delete", { id: view.id, revision: view.revision });
  views.value = views.peek().filter((each) => each.id !== view.id);
  return () => createView(model, view.name, view.search, view.isShared);
}

/** What the address says, without the view that it names. */
export function currentSearch(): string {
  const now = new URLSearchParams(query.value);
  now.delete(VIEW);
  return now.toString();
}

/** The view that the address names. */
export function currentView(): View | undefined {
  const id = query.value.get(VIEW);
  return views.value.find((each) => each.id === id);
}

/** Whether the address says something else than the view. */
export function isViewChanged(model: Model, view: View): boolean {
  return canonicalSearch(model, currentSearch()) !== view.search;
}

export function addressOfView(model: string, view: View): string {
  return `/models/${model}?${VIEW}=${encodeURIComponent(view.id)}${view.search ? `&${view.search}` : ""}`;
}
