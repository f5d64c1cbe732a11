// Parts from which each app builds the frame around its pages: skip link, page, switches, messages, keys.
import { useLayoutEffect } from "preact/hooks";
import { currentRoute, path } from "../router";
import { areShortcutsDisabled, isSheetOpen, shortcuts, registerShortcut, disableShortcuts } from "../shortcuts";
import { setTheme, theme, type Theme } from "../theme";
import { language, type Language, LANGUAGES, setLanguage, translator } from "../i18n";
import { Button, LinkButton } from "./button";
import { Dialog } from "./dialog";
import { Heading } from "./heading";
import { Icon, type IconName } from "./icon";
import { Toasts } from "./toast";

const t = translator("common");

/** The link to the content, first in every frame. */
export function SkipLink() {
  return (
    <a class="skip" href="#main">
      {t("skip")}
    </a>
  );
}

/** The page at the address. */
export function Page() {
  const route = currentRoute.value;
  return (
    <main id="main" tabIndex={-1} key={path.value}>
      {route ? route.route.page(route.values) : <NotFound />}
    </main>
  );
}

/** Messages, and the list of keyboard shortcuts, which `?` opens; last in every frame. */
export function Overlays() {
  useLayoutEffect(() => registerShortcut({ key: "?", does: t("keyboard.sheet"), run: () => (isSheetOpen.value = true) }), []);
  return (
    <>
      <ShortcutSheet />
      <Toasts />
    </>
  );
}

export function KeyboardButton() {
  return (
    <Button variant="plain" tight onClick={() => (isSheetOpen.value = true)}>
      {t("keyboard")}
    </Button>
  );
}

export function NotFound() {
  return (
    <>
      <Heading title={t("missing.title")} />
      <div class="state">
        <Icon name="search" />
        <p>{t("missing.text")}</p>
        <LinkButton href="/">{t("missing.home")}</LinkButton>
      </div>
    </>
  );
}

/** The logo: a signature above a line. */
export function Logo() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke-linecap="round">
      <rect width="24" height="24" rx="6.5" fill="var(--accent)" />
      <path d="M5.5 14.2c2.4-6.6 4.3-7.7 4.6-5.6.2 1.7-1.3 4.7-.2 5 1.1.3 2-2.8 3.1-2.6.9.2.3 2 1.3 2.2.9.2 1.7-.9 4.2-1.5" stroke="var(--on-accent)" stroke-width="1.7" />
      <path d="M5.5 18.2h13" stroke="#ffb84d" stroke-width="1.8" />
    </svg>
  );
}

interface SwitchProps {
  /** Shown instead of the name. Screen readers read the name. */
  icon?: IconName;
}

function SwitchName({ icon, name }: SwitchProps & { name: string }) {
  return icon ? (
    <>
      <Icon name={icon} />
      <span class="hidden-text">{name}</span>
    </>
  ) : (
    <>{name}</>
  );
}

export function ThemeSwitch({ icon }: SwitchProps) {
  const options: readonly Theme[] = ["auto", "light", "dark"];
  return (
    <label class="row small">
      <SwitchName {...(icon ? { icon } : {})} name={t("theme")} />
      <select class="input" value={theme.value} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
        {options.map((choice) => (
          <option key={choice} value={choice} selected={choice === theme.value}>
            {t(`theme.${choice}` as "theme.auto")}
          </option>
        ))}
      </select>
    </label>
  );
}

export function LanguageSwitch({ icon }: SwitchProps) {
  return (
    <label class="row small">
      <SwitchName {...(icon ? { icon } : {})} name={t("language")} />
      <select class="input" value={language} onChange={(event) => setLanguage(event.currentTarget.value as Language)}>
        {Object.entries(LANGUAGES).map(([code, name]) => (
          <option key={code} value={code} lang={code} selected={code === language}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

export function ShortcutSheet() {
  return (
    <Dialog title={t("keyboard")} isOpen={isSheetOpen.value} onClose={() => (isSheetOpen.value = false)} isRead>
      <table class="keys">
        <thead class="hidden-text">
          <tr>
            <th scope="col">{t("keyboard.key")}</th>
            <th scope="col">{t("keyboard.does")}</th>
          </tr>
        </thead>
        <tbody>
          {shortcuts.value.map((shortcut) => (
            <tr key={shortcut.key + shortcut.does}>
              <td>
                {shortcut.key.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </td>
              <td>{shortcut.does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <label class="row">
        <input type="checkbox" checked={areShortcutsDisabled.value} onChange={(event) => disableShortcuts(event.currentTarget.checked)} />
        {t("keyboard.off")}
      </label>
    </Dialog>
  );
}
