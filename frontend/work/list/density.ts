// The row height of lists that have no own row height: a choice of the person, stored in this browser.
import { signal } from "@preact/signals";

const STORED_AS = "countersign-density";

export const DENSITIES = ["compact", "relaxed"] as const;
export type Density = (typeof DENSITIES)[number];

export const defaultDensity = signal<Density>(localStorage.getItem(STORED_AS) === "relaxed" ? "relaxed" : "compact");

export function setDefaultDensity(density: Density): void {
  defaultDensity.value = density;
  localStorage.setItem(STORED_AS, density);
}
