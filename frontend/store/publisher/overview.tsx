// The publisher's first page: products, analytics, codes, team, webhooks and signing keys, one at a time.
import type { ComponentChildren } from "preact";
import { LinkButton } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { query } from "../../shared/router";
import { isPublisher } from "../me";
import { Codes } from "./codes";
import { currentOrg } from "./org";
import { Products } from "./products";
import { PublisherArea, tabLabel, tabsOf, type AreaTab } from "./publisher_area";
import { RequirePublisher } from "./require_publisher";
import { SigningKeys } from "./signing_keys";
import { Team } from "./team";
import { Usage } from "./usage";
import { Webhooks } from "./webhooks";
import { translator } from "../../shared/i18n";

const tStore = translator("store");
const t = translator("publisher");

const CONTENT: Readonly<Record<AreaTab, (org: string) => ComponentChildren>> = {
  products: (org) => <Products key={org} org={org} />,
  usage: (org) => <Usage key={org} org={org} />,
  codes: (org) => <Codes key={org} org={org} />,
  team: (org) => <Team key={org} org={org} />,
  webhooks: (org) => <Webhooks key={org} org={org} />,
  signing: (org) => <SigningKeys key={org} org={org} />,
};

export function Overview() {
  return (
    <div class="wrap">
      {!isPublisher.value && <Heading title={tStore("publisher")} />}
      <RequirePublisher>
        <ChosenTab />
      </RequirePublisher>
    </div>
  );
}

function ChosenTab() {
  const org = currentOrg();
  const chosenTab = tabsOf(org).find((tab) => tab === query.value.get("tab")) ?? "products";
  return (
    <PublisherArea org={org} current={chosenTab}>
      {/* The analytics have their controls beside their heading. */}
      {chosenTab !== "usage" && (
        <Heading title={tabLabel(chosenTab)}>
          {chosenTab === "products" && (
            <LinkButton href={`/publisher/new?org=${encodeURIComponent(org)}`} variant="strong">
              <Icon name="plus" />
              {t("new.product")}
            </LinkButton>
          )}
        </Heading>
      )}
      {CONTENT[chosenTab](org)}
    </PublisherArea>
  );
}
