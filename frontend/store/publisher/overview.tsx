// The publisher's first page: tabs for products, codes, usage and team.
import { LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { Tabs } from "../../shared/components/tabs";
import { setQuery, query } from "../../shared/router";
import { me, isOwnerOf } from "../me";
import { Codes } from "./codes";
import { currentOrg, OrgChoice } from "./org";
import { Products } from "./products";
import { RequirePublisher } from "./require_publisher";
import { Team } from "./team";
import { Usage } from "./usage";
import { translator } from "../../shared/i18n";

const tStore = translator("store");
const t = translator("publisher");

export function Overview() {
  return (
    <>
      <Heading title={tStore("publisher")} />
      <RequirePublisher>
        <Tabbed />
      </RequirePublisher>
    </>
  );
}

function roleIn(at: string): "viewer" | "publisher" | "owner" {
  const role = me.value?.roles[at];
  return role === "owner" || role === "publisher" ? role : "viewer";
}

function Tabbed() {
  const at = currentOrg();
  const owners = [
    { name: "codes", label: t("codes"), content: () => <Codes key={at} org={at} /> },
    { name: "usage", label: t("usage"), content: () => <Usage key={at} org={at} /> },
    { name: "team", label: t("team"), content: () => <Team key={at} org={at} /> },
  ];
  return (
    <div class="stack">
      <div class="row between">
        <span class="row">
          <OrgChoice />
          <Chip>{t(`role.${roleIn(at)}`)}</Chip>
        </span>
        <LinkButton href={`/publisher/new?org=${encodeURIComponent(at)}`}>{t("new.product")}</LinkButton>
      </div>
      <Tabs
        label={tStore("publisher")}
        chosen={query.value.get("tab") ?? "products"}
        onChoose={(tab) => setQuery({ tab })}
        tabs={[
          { name: "products", label: tStore("products"), content: () => <Products key={at} org={at} /> },
          ...(isOwnerOf(at) ? owners : []),
        ]}
      />
    </div>
  );
}
