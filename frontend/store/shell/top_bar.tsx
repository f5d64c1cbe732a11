// The top bar: navigation, search, redeem and account.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Icon } from "../../shared/components/icon";
import { siteState } from "../../shared/components/heading";
import { OfflineNotice } from "../../shared/components/offline";
import { Logo } from "../../shared/components/shell";
import { translator } from "../../shared/i18n";
import { AccountMenu } from "./account_menu";
import { Bell } from "./bell";
import { ariaCurrent, LINKS } from "./navigation";
import { SearchBox } from "./search_box";

const tCommon = translator("common");
const t = translator("store");

export function TopBar() {
  const [isSearching, setSearching] = useState(false);
  return (
    <header class="top-bar">
      <div class="wrap">
        <a class="brand" href="/">
          <Logo />
          {siteState.title}
        </a>
        <nav aria-label={tCommon("main")}>
          {LINKS.map(({ address, label }) => (
            <a key={address} href={address} aria-current={ariaCurrent(address)}>
              {label}
            </a>
          ))}
        </nav>
        <SearchBox id="q" />
        <OfflineNotice />
        <a class="button plain wide-only" href="/redeem" aria-current={ariaCurrent("/redeem")}>
          <Icon name="ticket" />
          {t("redeem")}
        </a>
        <span class="narrow-only">
          <Button variant="plain" size="square" aria-label={t("search")} onClick={() => setSearching(true)}>
            <Icon name="search" size="l" />
          </Button>
        </span>
        <Bell />
        <AccountMenu />
      </div>
      <Dialog title={t("search")} isOpen={isSearching} onClose={() => setSearching(false)} variant="sheet">
        <SearchBox id="q-sheet" onLeave={() => setSearching(false)} isOpen />
      </Dialog>
    </header>
  );
}
