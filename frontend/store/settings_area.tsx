// The frame of a person's own pages: the navigation at the left, and the page. On phones, the account page has the
// links.
import type { ComponentChildren } from "preact";
import type { IconName } from "../shared/components/icon";
import { translator } from "../shared/i18n";
import { SideNav } from "./side_nav";
import "./side_nav.css";
import "./settings.css";

const t = translator("store");
const tNotifications = translator("notifications");

interface Place {
  address: string;
  label: string;
  icon: IconName;
}

/** The pages of a person, besides the account page. */
export function accountLinks(): Place[] {
  return [
    { address: "/notifications", label: tNotifications("title"), icon: "bell" },
    { address: "/auth/agents", label: t("agents"), icon: "bot" },
    { address: "/keys", label: t("keys"), icon: "key-round" },
  ];
}

export function SettingsArea({ current, children }: { current: string; children: ComponentChildren }) {
  const account: Place = { address: "/account", label: t("account"), icon: "user" };
  const places = [account, ...accountLinks()].map((place) => ({ ...place, isCurrent: place.address === current }));
  return (
    <div class={current === account.address ? "sided settings-sided is-index" : "sided settings-sided"}>
      <div class="side-column">
        <SideNav label={t("account")} groups={[{ places }]} />
      </div>
      <div class="settings">{children}</div>
    </div>
  );
}
