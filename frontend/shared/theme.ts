// Light, dark, or as the system says; told to the server, so that the next page comes in these colours at once.
import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const said = document.documentElement.dataset["theme"];
export const theme = signal<Theme>(said === "light" || said === "dark" ? said : "auto");

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
