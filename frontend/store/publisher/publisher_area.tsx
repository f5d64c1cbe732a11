// The frame of the publisher's pages: the organisation and the navigation at the left, the page beside them.
import type { ComponentChildren } from "preact";
import { Menu } from "../../shared/components/menu";
import { Icon, type IconName } from "../../shared/components/icon";
import { isOwnerOf, isPublisher, me } from "../me";
import { Monogram } from "../monogram";
import { SideNav, type SideLink } from "../side_nav";
import { currentOrg, OrgChoice } from "./org";
import { useOrgFacts } from "./org_facts";
import { translator } from "../../shared/i18n";
import "../side_nav.css";
import "./publisher.css";

const tStore = translator("store");
const t = translator("publisher");

export type AreaTab = "products" | "usage" | "codes" | "team" | "webhooks" | "signing";

const TABS: readonly { name: AreaTab; icon: IconName; isOrganisation?: boolean }[] = [
  { name: "usage", icon: "chart-line" },
  { name: "codes", icon: "ticket" },
  { name: "team", icon: "users", isOrganisation: true },
  { name: "webhooks", icon: "webhook", isOrganisation: true },
  { name: "signing", icon: "fingerprint", isOrganisation: true },
];

/** The tabs that the person may open. Only owners may open tabs other than the products. */
export function tabsOf(org: string): readonly AreaTab[] {
  return ["products", ...(isOwnerOf(org) ? TABS.map((tab) => tab.name) : [])];
}

export function tabLabel(name: AreaTab): string {
  return name === "products" ? tStore("products") : t(name);
}

function roleIn(org: string): "viewer" | "publisher" | "owner" {
  const role = me.value?.roles[org];
  return role === "owner" || role === "publisher" ? role : "viewer";
}

interface Props {
  org: string;
  current: AreaTab;
  /** Whether the organisation is fixed, as on a product's pages. */
  isFixed?: boolean;
  children: ComponentChildren;
}

export function PublisherArea({ org, current, isFixed = false, children }: Props) {
  const tabs = tabsOf(org);
  const { name: title, counts } = useOrgFacts(org, isOwnerOf(org));
  const countOf = (name: AreaTab) => (name === "products" ? counts?.products : name === "team" ? counts?.members : undefined);
  const placeOf = (name: AreaTab, icon: IconName): SideLink => ({
    address: `/publisher?${new URLSearchParams({ org, tab: name })}`,
    label: tabLabel(name),
    icon,
    isCurrent: name === current,
    count: countOf(name),
  });
  const placesFor = (isOrganisation: boolean) =>
    TABS.filter((tab) => tabs.includes(tab.name) && Boolean(tab.isOrganisation) === isOrganisation).map((tab) => placeOf(tab.name, tab.icon));
  const profile: SideLink = { address: `/publishers/${encodeURIComponent(org)}`, label: t("profile"), icon: "building-2", isCurrent: false };
  const groups = [
    { places: [placeOf("products", "package"), ...placesFor(false), profile] },
    { title: t("org"), places: placesFor(true) },
  ];
  const items = groups.flatMap((group) => group.places.map(({ label, icon, address }) => ({ label, icon, does: address })));
  return (
    <div class="sided publisher-sided">
      <div class="side-column">
        <div class="side-org">
          <Monogram slug={org} name={title} />
          <div>
            {isFixed ? <b class="cut">{title}</b> : <OrgChoice name={title} />}
            <span class="quiet">{t(`role.name.${roleIn(org)}`)}</span>
          </div>
          {/* At phone width it takes the place of the list below. */}
          <Menu icon="menu" label={t("area.menu")} items={items} />
        </div>
        <SideNav label={tStore("publisher")} groups={groups} />
      </div>
      <div class="publisher-page-content">{children}</div>
    </div>
  );
}

/** The path above the heading: the products, on a release's page the product, and the current page. */
export function ProductPath({ product, current }: { product?: { slug: string; title: string }; current: string }) {
  return (
    <nav class="breadcrumb" aria-label={tStore("breadcrumb")}>
      <a href="/publisher">{tStore("products")}</a>
      <Icon name="chevron-right" size="s" />
      {product && (
        <>
          <a href={`/publisher/products/${product.slug}`}>{product.title}</a>
          <Icon name="chevron-right" size="s" />
        </>
      )}
      <span aria-current="page">{current}</span>
    </nav>
  );
}

/** The frame of a product's pages, for people who publish for its organisation. It is rendered before the organisation is
 *  known, so that the heading stays the same element and keeps the focus. */
export function ProductArea({ org, children }: { org: string | undefined; children: ComponentChildren }) {
  return isPublisher.value && (org === undefined || me.value?.orgs.includes(org)) ? (
    <PublisherArea org={org ?? currentOrg()} current="products" isFixed>
      {children}
    </PublisherArea>
  ) : (
    <>{children}</>
  );
}
