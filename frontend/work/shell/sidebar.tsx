// The sidebar: the entries for this person, with the number of approvals and records.
import { useEffect } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { siteState } from "../../shared/components/heading";
import { Logo } from "../../shared/components/shell";
import { path } from "../../shared/router";
import { isSheetOpen } from "../../shared/shortcuts";
import { setTheme } from "../../shared/theme";
import { LANGUAGES, type Language, number, setLanguage, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { signOut } from "../current_user";
import { PaletteButton } from "../palette/palette_button";
import { Avatar } from "../values/avatar";
import { automationGroup, favouriteGroups, firstEntries, isAt, lastEntries, moduleGroups, type NavigationEntry, type NavigationGroup } from "./navigation";
import { loadFavourites } from "./favourites";
import { loadRecordCounts } from "./record_counts";
import { closedGroups, isRail, toggleGroup, toggleRail } from "./sidebar_state";

const tCommon = translator("common");
const t = translator("work");

export function Sidebar({ meta }: { meta: Meta }) {
  useEffect(() => loadRecordCounts(meta), [meta]);
  useEffect(() => loadFavourites(meta), [meta]);
  const groups = [...favouriteGroups(meta), ...moduleGroups(meta), automationGroup(meta)];
  return (
    <header class="side" id="side">
      <div class="side-top">
        <a class="side-brand" href="/">
          <Logo />
          <span class="side-label">{siteState.title}</span>
        </a>
        <button type="button" class="button plain square tight side-fold" aria-pressed={isRail.value} aria-label={t("rail")} title={t("rail")} onClick={toggleRail}>
          <Icon name="panel-left" />
        </button>
      </div>
      <PaletteButton meta={meta} />
      <nav class="side-nav" aria-label={tCommon("main")}>
        <ul>{firstEntries().map((firstEntry) => entryOf(firstEntry))}</ul>
        {groups.map((navigationGroup) => (
          <Group key={navigationGroup.name} group={navigationGroup} />
        ))}
      </nav>
      <nav class="side-foot" aria-label={t("admin")}>
        <ul>{lastEntries(meta).map((lastEntry) => entryOf(lastEntry))}</ul>
        <Person name={meta.caller.name} />
      </nav>
    </header>
  );
}

function Group({ group }: { group: NavigationGroup }) {
  const isOpen = !closedGroups.value.has(group.name);
  return (
    <>
      <button type="button" class="side-group" aria-expanded={isOpen} onClick={() => toggleGroup(group.name)}>
        {group.label}
        <Icon name={isOpen ? "chevron-down" : "chevron-right"} size="s" />
      </button>
      {isOpen && <ul>{group.entries.map((entry) => entryOf(entry))}</ul>}
    </>
  );
}

function entryOf({ address, label, icon, count, waiting = 0 }: NavigationEntry) {
  return (
    <li key={address}>
      <a class="side-link" href={address} title={label} aria-current={isAt(address, path.value) ? "page" : undefined}>
        <Icon name={icon} />
        <span class="side-label">{label}</span>
        {count !== undefined && <span class="side-count">{number(count)}</span>}
        {waiting > 0 && <WaitingBadge count={waiting} />}
      </a>
    </li>
  );
}

/** The number of pending approvals. */
export function WaitingBadge({ count }: { count: number }) {
  return (
    <span class="badge">
      {number(count)}
      <span class="hidden-text"> {t("waiting")}</span>
    </span>
  );
}

function Person({ name }: { name: string }) {
  const languages = Object.entries(LANGUAGES).map(([code, label]) => ({ label, does: () => setLanguage(code as Language) }));
  const themes = (["auto", "light", "dark"] as const).map((choice) => ({ label: tCommon(`theme.${choice}` as "theme.auto"), does: () => setTheme(choice) }));
  return (
    <div class="side-person">
      <span class="hidden-text">{t("signed.as", { name })}</span>
      <Menu
        label={t("account", { name })}
        opener={
          <>
            <Avatar name={name} />
            <span class="side-label cut">{name}</span>
            <Icon name="ellipsis" />
          </>
        }
        items={[
          { label: t("account.page"), icon: "user", does: "/account" },
          { label: tCommon("theme"), icon: "moon", does: themes },
          { label: tCommon("language"), icon: "languages", does: languages },
          { label: tCommon("keyboard"), icon: "keyboard", does: () => (isSheetOpen.value = true) },
          { label: tCommon("sign.out"), icon: "log-out", does: () => void signOut() },
        ]}
      />
    </div>
  );
}
