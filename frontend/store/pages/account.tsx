// The account page: who is signed in and where, what they publish for, and how the pages look in this browser.
import { useState } from "preact/hooks";
import { send } from "../../shared/client";
import { Button } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { LanguageSwitch, ThemeSwitch } from "../../shared/components/shell";
import { translator } from "../../shared/i18n";
import { Problem } from "../../shared/problem";
import { saveFile } from "../../shared/save_file";
import { showToast } from "../../shared/toast";
import { Sessions } from "../account/sessions";
import { me } from "../me";
import { RequireSignIn } from "../require_sign_in";
import { accountLinks, SettingsArea } from "../settings_area";
import { Avatar, signOut } from "../shell/account_menu";

const tCommon = translator("common");
const t = translator("store");
const tPublisher = translator("publisher");

export function Account() {
  return (
    <SettingsArea current="/account">
      <Heading title={t("account")} />
      <RequireSignIn text={t("account.text")}>
        <section class="panel-box setting-panel" aria-label={t("account.person")}>
          <ul class="setting-rows">
            <li>
              <Avatar name={me.value?.email ?? ""} />
              <b class="grow">{me.value?.email}</b>
              <Button onClick={signOut}>
                <Icon name="log-out" />
                {tCommon("sign.out")}
              </Button>
            </li>
          </ul>
        </section>
        <ul class="link-list panel-box">
          {[...accountLinks(), { address: "/redeem", label: t("redeem"), icon: "ticket" as const }].map(({ address, label, icon }) => (
            <li key={address}>
              <a href={address}>
                <Icon name={icon} />
                {label}
                <Icon name="chevron-right" size="s" />
              </a>
            </li>
          ))}
        </ul>
        <Organisations />
        <Sessions />
        <Export />
      </RequireSignIn>
      <section class="panel-box setting-panel" aria-labelledby="appearance">
        <h2 id="appearance">{t("appearance")}</h2>
        <p class="quiet">{t("appearance.text")}</p>
        <ul class="setting-rows">
          <li>
            <ThemeSwitch />
          </li>
          <li>
            <LanguageSwitch />
          </li>
        </ul>
      </section>
    </SettingsArea>
  );
}

/** The button that saves everything the store keeps about the person. The request carries the session mark, so the file
 *  never contains the data of another person who signed in in another window. */
function Export() {
  const [isBusy, setIsBusy] = useState(false);
  const save = async () => {
    setIsBusy(true);
    try {
      const response = await send("GET", "/api/v1/me/export");
      saveFile("countersign-account.json", await response.blob());
    } catch (error) {
      showToast(Problem.from(error).message);
    }
    setIsBusy(false);
  };
  return (
    <section class="panel-box setting-panel" aria-labelledby="export">
      <h2 id="export">{t("export")}</h2>
      <p class="quiet">{t("export.text")}</p>
      <div class="row">
        <Button busy={isBusy} onClick={() => void save()}>
          <Icon name="download" />
          {t("export.do")}
        </Button>
      </div>
    </section>
  );
}

/** The organisations that the person publishes for, with their role. */
function Organisations() {
  const roles = Object.entries(me.value?.roles ?? {});
  if (roles.length === 0) {
    return null;
  }
  return (
    <section class="panel-box setting-panel" aria-labelledby="organisations">
      <h2 id="organisations">{t("account.orgs")}</h2>
      <ul class="setting-rows">
        {roles.map(([org, role]) => (
          <li key={org}>
            <Icon name="building-2" />
            <a class="grow" href={`/publisher?${new URLSearchParams({ org })}`}>
              {org}
            </a>
            <span class="quiet">{tPublisher(`role.name.${role === "owner" || role === "publisher" ? role : "viewer"}`)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
