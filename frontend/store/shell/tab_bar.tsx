// The navigation as tabs at the bottom of a phone's screen.
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import { ariaCurrent, LINKS } from "./navigation";

const tCommon = translator("common");
const t = translator("store");

export function TabBar() {
  return (
    <nav class="tab-bar" aria-label={tCommon("main")}>
      {[...LINKS, { address: "/account", label: t("account"), icon: "user" } as const].map(({ address, label, icon }) => (
        <a key={address} href={address} aria-current={ariaCurrent(address)}>
          <Icon name={icon} />
          {label}
        </a>
      ))}
    </nav>
  );
}
