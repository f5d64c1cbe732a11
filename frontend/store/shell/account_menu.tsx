// The menu of the signed-in person, opened by their initials.
import { LinkButton } from "../../shared/components/button";
import { Menu } from "../../shared/components/menu";
import { path, query } from "../../shared/router";
import { isSignedIn } from "../../shared/session";
import { signInAddress } from "../../shared/sign_in_page";
import { setTheme, theme } from "../../shared/theme";
import { language, LANGUAGES, setLanguage, translator, type Language } from "../../shared/i18n";
import { isPublisher, me } from "../me";

const tCommon = translator("common");
const t = translator("store");

const THEMES = { auto: "monitor", light: "sun", dark: "moon" } as const;
const PALETTE_SIZE = 5;

/** Sign out, and clear the storage of this tab. */
export function signOut(): void {
  sessionStorage.clear();
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/auth/signout";
  document.body.append(form);
  form.submit();
}

export function AccountMenu() {
  if (isSignedIn.value === null) {
    return <span class="avatar-space" />;
  }
  if (!isSignedIn.value) {
    const currentAddress = path.value + (query.value.size ? `?${query.value}` : "");
    return (
      <LinkButton variant="strong" href={signInAddress(currentAddress)}>
        {tCommon("sign.in")}
      </LinkButton>
    );
  }
  const email = me.value?.email ?? "";
  return (
    <Menu
      label={email ? t("account.of", { email }) : t("account")}
      opener={<Avatar name={email} />}
      items={[
        { label: t("account"), does: "/account", icon: "user" },
        { label: t("agents"), does: "/auth/agents", icon: "bot" },
        { label: t("keys"), does: "/keys", icon: "key-round" },
        ...(isPublisher.value ? [{ label: t("publisher"), does: "/publisher", icon: "building-2" } as const] : []),
        {
          label: tCommon("theme"),
          icon: THEMES[theme.value],
          does: Object.entries(THEMES).map(([name, icon]) => ({
            label: tCommon(`theme.${name}` as "theme.auto"),
            icon,
            does: () => setTheme(name as keyof typeof THEMES),
          })),
        },
        {
          label: tCommon("language"),
          icon: "languages",
          does: Object.entries(LANGUAGES).map(([code, label]) => ({
            label,
            ...(code === language ? { icon: "check" as const } : {}),
            does: () => setLanguage(code as Language),
          })),
        },
        { label: tCommon("sign.out"), does: signOut, icon: "log-out" },
      ]}
    />
  );
}

/** Two letters of the name before the @, on a colour derived from the name. */
export function Avatar({ name }: { name: string }) {
  const nameParts = name.split("@")[0]?.split(/[._+-]+/).filter(Boolean) ?? [];
  const letters = (nameParts.length > 1 ? nameParts.map((namePart) => namePart[0]).join("") : (nameParts[0] ?? "")).slice(0, 2).toUpperCase();
  const sum = [...name].reduce((total, character) => total + (character.codePointAt(0) ?? 0), 0);
  return <span class={`avatar m a${(sum % PALETTE_SIZE) + 1}`} data-letters={letters} />;
}
