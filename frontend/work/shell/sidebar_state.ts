// The state of the sidebar, stored in this browser: whether it is narrow, and which groups are closed.
import { signal } from "@preact/signals";

const RAIL = "countersign-rail";
const CLOSED = "countersign-closed-groups";

export const isRail = signal(localStorage.getItem(RAIL) === "1");
export const closedGroups = signal<ReadonlySet<string>>(new Set(JSON.parse(localStorage.getItem(CLOSED) ?? "[]") as string[]));
/** On a phone: whether the sidebar is open above the page. */
export const isSheet = signal(false);

export function toggleRail(): void {
  isRail.value = !isRail.peek();
  localStorage.setItem(RAIL, isRail.peek() ? "1" : "");
}

export function toggleGroup(name: string): void {
  const newClosed = new Set(closedGroups.peek());
  if (!newClosed.delete(name)) {
    newClosed.add(name);
  }
  closedGroups.value = newClosed;
  localStorage.setItem(CLOSED, JSON.stringify([...newClosed]));
}
