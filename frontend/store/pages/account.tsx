// The account page: links to the person's own pages.
import { Button } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { Icon, type IconName } from "../../shared/components/icon";
import { LanguageSwitch, ThemeSwitch } from "../../shared/components/shell";
import { translator } from "../../shared/i18n";
import { isPublisher, me } from "../me";
import { RequireSignIn } from "../require_sign_in";
import { Avatar, signOut } from "../shell/account_menu";

const tCommon = translator("common");
const t = translator("store");
const tNotifications = translator("notifications");

export function Account() {
  const places: readonly (readonly [address: string, label: string, icon: IconName])[] = [
    ["/notifications", tNotifications("title"), "bell"],
    ["/redeem", t("redeem"), "ticket"],
    ["/auth/agents", t("agents"), "bot"],
    ["/keys", t("keys"), "key-round"],
    ...(isPublisher.value ? ([["/publisher", t("publisher"), "building-2"]] as const) : []),
  ];
  return (
    <div class="settings">
      <Heading title={t("account")} />
      <RequireSignIn text={t("account.text")}>
        <p class="row">
          <Avatar name={me.value?.email ?? ""} />
          {me.value?.email}
        </p>
        <ul class="link-list panel-box">
          {places.map(([address, label, icon]) => (
            <li key={address}>
              <a href={address}>
                <Icon name={icon} />
                {label}
                <Icon name="chevron-right" size="s" />
              </a>
            </li>
          ))}
        </ul>
        <div class="row">
          <Button onClick={signOut}>
            <Icon name="log-out" />
            {tCommon("sign.out")}
          </Button>
        </div>
      </RequireSignIn>
      <div class="row">
        <ThemeSwitch />
        <LanguageSwitch />
      </div>
    </div>
  );
}
