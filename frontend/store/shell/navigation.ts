// The links in the navigation bars of the store.
import type { IconName } from "../../shared/components/icon";
import { go, path } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { translator } from "../../shared/i18n";

const t = translator("store");

interface NavigationLink {
  address: string;
  label: string;
  icon: IconName;
}

export const LINKS: readonly NavigationLink[] = [
  { address: "/", label: t("discover"), icon: "compass" },
  { address: "/browse", label: t("browse"), icon: "layout-grid" },
  { address: "/library", label: t("library"), icon: "library" },
  { address: "/following", label: t("following"), icon: "heart" },
];

/** The value of `aria-current` for a link to this address. */
export function ariaCurrent(address: string): "page" | undefined {
  return path.value === address ? "page" : undefined;
}

for (const [key, address, label] of [
  ["g p", "/", t("discover")],
  ["g b", "/browse", t("browse")],
  ["g l", "/library", t("library")],
  ["g f", "/following", t("following")],
  ["g r", "/redeem", t("redeem")],
  ["g a", "/questions", t("ask")],
  ["g k", "/keys", t("keys")],
] as const) {
  registerShortcut({ key, does: label, run: () => go(address) });
}
