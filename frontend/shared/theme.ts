// The theme: light, dark, or that of the system. A cookie tells the server, so that pages have these colours from the start.
import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const storedTheme = document.documentElement.dataset["theme"];
export const theme = signal<Theme>(storedTheme === "light" || storedTheme === "dark" ? storedTheme : "auto");

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  const age_s = chosen === "auto" ? 0 : 31_536_000;
  document.cookie = `countersign-theme=${chosen}; Path=/; Max-Age=${age_s}; SameSite=Lax`;
  if (chosen === "auto") {
    delete document.documentElement.dataset["theme"];
  } else {
    document.documentElement.dataset["theme"] = chosen;
  }
}
