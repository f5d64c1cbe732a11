// The footer of the store: links, theme and language.
import { KeyboardButton, LanguageSwitch, Logo, ThemeSwitch } from "../../shared/components/shell";
import { siteState } from "../../shared/components/heading";
import { translator } from "../../shared/i18n";

const t = translator("store");

export function Footer() {
  const links = [
    ["/wiki.json", t("manual")],
    ["/publisher", t("for.publishers")],
    ["/openapi.json", t("reference")],
    ["/auth.md", t("for.agents")],
    ["/api/v1/health", t("status")],
  ] as const;
  return (
    <footer class="foot">
      <div class="wrap">
        <span class="brand">
          <Logo />
          {siteState.title}
        </span>
        <nav aria-label={t("foot")}>
          {links.map(([address, label]) => (
            <a key={address} href={address}>
              {label}
            </a>
          ))}
        </nav>
        <span class="right row">
          <KeyboardButton />
          <ThemeSwitch icon="monitor" />
          <LanguageSwitch icon="languages" />
        </span>
      </div>
    </footer>
  );
}
