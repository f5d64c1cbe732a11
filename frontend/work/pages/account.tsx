// The person's own settings: language, theme, density and keys in this browser, the agents that act for them, and sessions.
import { Button, LinkButton } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { Icon, type IconName } from "../../shared/components/icon";
import { LANGUAGES, language, setLanguage, translator, type Language } from "../../shared/i18n";
import { areShortcutsDisabled, disableShortcuts, isSheetOpen } from "../../shared/shortcuts";
import { setTheme, theme, type Theme } from "../../shared/theme";
import { Sessions } from "../account/sessions";
import type { Meta } from "../api";
import { signOut } from "../current_user";
import { defaultDensity, DENSITIES, setDefaultDensity, type Density } from "../list/density";
import { canList, modelOf } from "../models";
import { Avatar } from "../values/avatar";
import { Widget } from "../widgets/widget";
import "../account/account.css";

const t = translator("account");
const tCommon = translator("common");

export function Account({ meta }: { meta: Meta }) {
  const tokens = modelOf(meta, "agent_token");
  return (
    <div class="page">
      <Heading title={t("title")} />
      <div class="account">
        <p class="account-person">
          <Avatar name={meta.caller.name} size="l" />
          <strong>{meta.caller.name}</strong>
          <Button onClick={() => void signOut()}>
            <Icon name="log-out" size="s" />
            {tCommon("sign.out")}
          </Button>
        </p>
        <Appearance />
        {tokens && canList(tokens) && (
          <Widget title={t("agents")}>
            <div class="account-row">
              <Icon name="bot" />
              <p class="grow">{t("agents.text")}</p>
              <LinkButton tight href="/agents">{t("agents.open")}</LinkButton>
            </div>
          </Widget>
        )}
        <Sessions {...{ meta }} />
      </div>
    </div>
  );
}

function Appearance() {
  return (
    <Widget title={t("appearance")}>
      <p class="account-note">{t("appearance.text")}</p>
      <Choice name="language" icon="languages" label={tCommon("language")} value={language} options={Object.entries(LANGUAGES)} onChange={(code) => setLanguage(code as Language)} />
      <Choice name="theme" icon="moon" label={tCommon("theme")} value={theme.value} options={(["auto", "light", "dark"] as const).map((choice) => [choice, tCommon(`theme.${choice}`)])} onChange={(chosen) => setTheme(chosen as Theme)} />
      <Choice name="density" icon="list" label={t("density")} value={defaultDensity.value} options={DENSITIES.map((density) => [density, t(`density.${density}`)])} onChange={(chosen) => setDefaultDensity(chosen as Density)} />
      <div class="account-row">
        <Icon name="keyboard" />
        <label class="grow row tight">
          <input type="checkbox" checked={areShortcutsDisabled.value} onChange={(event) => disableShortcuts(event.currentTarget.checked)} />
          {tCommon("keyboard.off")}
        </label>
        <Button tight onClick={() => (isSheetOpen.value = true)}>
          {tCommon("keyboard")}
        </Button>
      </div>
    </Widget>
  );
}

interface ChoiceProps {
  name: string;
  icon: IconName;
  label: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  onChange: (value: string) => void;
}

function Choice({ name, icon, label, value, options, onChange }: ChoiceProps) {
  return (
    <label class="account-row" for={`account-${name}`}>
      <Icon name={icon} />
      <span class="grow">{label}</span>
      <select class="input tight" id={`account-${name}`} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
