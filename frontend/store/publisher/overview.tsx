// The publisher's first page: their products, codes, numbers and team, with the places at the left.
import type { ComponentChildren } from "preact";
import { LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { Icon, type IconName } from "../../shared/components/icon";
import { query } from "../../shared/router";
import { isOwnerOf, isPublisher, me } from "../me";
import { Monogram } from "../monogram";
import { SideNav } from "../side_nav";
import { Codes } from "./codes";
import { currentOrg, OrgChoice } from "./org";
import { Products } from "./products";
import { RequirePublisher } from "./require_publisher";
import { Team } from "./team";
import { Usage } from "./usage";
import { translator } from "../../shared/i18n";
import "../side_nav.css";
import "./publisher.css";

const tStore = translator("store");
const t = translator("publisher");

interface Tab {
  name: string;
  label: string;
  icon: IconName;
  /** Its content has the heading of the page. */
  hasHeading?: boolean;
  content: () => ComponentChildren;
}

export function Overview() {
  return (
    <div class="wrap">
      {!isPublisher.value && <Heading title={tStore("publisher")} />}
      <RequirePublisher>
        <Sided />
      </RequirePublisher>
    </div>
  );
}

function roleIn(at: string): "viewer" | "publisher" | "owner" {
  const role = me.value?.roles[at];
  return role === "owner" || role === "publisher" ? role : "viewer";
}

function Sided() {
  const at = currentOrg();
  const owners: Tab[] = [
    { name: "usage", label: t("usage"), icon: "chart-line", hasHeading: true, content: () => <Usage key={at} org={at} /> },
    { name: "codes", label: t("codes"), icon: "ticket", content: () => <Codes key={at} org={at} /> },
    { name: "team", label: t("team"), icon: "users", content: () => <Team key={at} org={at} /> },
  ];
  const products: Tab = { name: "products", label: tStore("products"), icon: "package", content: () => <Products key={at} org={at} /> };
  const tabs = [products, ...(isOwnerOf(at) ? owners : [])];
  const chosen = tabs.find((each) => each.name === query.value.get("tab")) ?? products;
  const address = (name: string) => `/publisher?${new URLSearchParams({ org: at, tab: name })}`;
  return (
    <div class="sided">
      <div class="side-column">
        <div class="side-org">
          <Monogram slug={at} name={at} />
          <div>
            <OrgChoice />
            <Chip plain>{t(`role.name.${roleIn(at)}`)}</Chip>
          </div>
        </div>
        <SideNav
          label={tStore("publisher")}
          groups={[
            {
              places: [
                ...tabs.map((each) => ({ address: address(each.name), label: each.label, icon: each.icon, isCurrent: each === chosen })),
                { address: `/publishers/${encodeURIComponent(at)}`, label: t("profile"), icon: "building-2", isCurrent: false },
              ],
            },
          ]}
        />
      </div>
      <div>
        {!chosen.hasHeading && (
          <Heading title={chosen.label}>
            <LinkButton href={`/publisher/new?org=${encodeURIComponent(at)}`} {...(chosen === products ? { look: "strong" as const } : {})}>
              <Icon name="plus" />
              {t("new.product")}
            </LinkButton>
          </Heading>
        )}
        {chosen.content()}
      </div>
    </div>
  );
}
