// The theme: light, dark, or the theme of the system. A cookie stores it, so that the server sends pages in these
// colours.
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
