// The theme: light, dark, or that of the system. A cookie tells the server, so that pages have these colours from the start.
import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const storedTheme = document.documentElement.dataset["theme"];
export const theme = signal<Theme>(storedTheme === "light" || storedTheme === "dark" ? storedTheme : "auto");

export function setTheme(newTheme: Theme): void {
  theme.value = newTheme;
  const age_s = newTheme === "auto" ? 0 : 31_536_000;
  document.cookie = `countersign-theme=${newTheme}; Path=/; Max-Age=${age_s}; SameSite=Lax`;
  if (newTheme === "auto") {
    delete document.documentElement.dataset["theme"];
  } else {
    document.documentElement.dataset["theme"] = newTheme;
  }
}
