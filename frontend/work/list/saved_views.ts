// Saved views of a list: addresses with a name, kept in this browser.
import { signal } from "@preact/signals";
import { query } from "../../shared/router";
import { currentUser } from "../current_user";

export interface View {
  id: string;
  name: string;
  /** The list's address after the question mark, without the view itself. */
  search: string;
  isShared?: boolean;
  /** Declared by the module: it can be neither changed nor removed. */
  isFixed?: boolean;
}

export const VIEW = "view";

/** The views of the list in front. */
export const views = signal<readonly View[]>([]);

/** Names and conditions may be personal: another person in this browser does not find them. */
function keyOf(model: string): string {
  const who = currentUser.peek();
  const name = who !== null && typeof who === "object" && "caller" in who ? who.caller.name : "";
  return `views:${name}:${model}`;
}

export function loadViews(model: string): void {
  try {
    const kept = JSON.parse(localStorage.getItem(keyOf(model)) ?? "{}") as Record<string, string>;
    views.value = Object.entries(kept).map(([name, search]) => ({ id: name, name, search }));
  } catch {
    views.value = [];
  }
}

function keep(model: string, next: readonly View[]): void {
  views.value = next;
  localStorage.setItem(keyOf(model), JSON.stringify(Object.fromEntries(next.map(({ name, search }) => [name, search]))));
}

/** Keep what the address says as a view of this name, in place of one that has it already; its id. */
export function saveView(model: string, name: string): string {
  const others = views.peek().filter((each) => each.name !== name);
  keep(model, [...others, { id: name, name, search: currentSearch() }]);
  return name;
}

/** The view has what the address says from now on. */
export function updateView(model: string, view: View): void {
  keep(model, views.peek().map((each) => (each === view ? { ...each, search: currentSearch() } : each)));
}

export function removeView(model: string, view: View): void {
  keep(model, views.peek().filter((each) => each !== view));
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

export function addressOfView(model: string, view: View): string {
  return `/models/${model}?${VIEW}=${encodeURIComponent(view.id)}${view.search ? `&${view.search}` : ""}`;
}
