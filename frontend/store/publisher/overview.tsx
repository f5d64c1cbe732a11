// A publisher's start: the products of the organisation, its codes, how it is used, and who works there.
import { LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { Tabs } from "../../shared/components/tabs";
import { ask, query } from "../../shared/router";
import { me, owns } from "../me";
import { say as store } from "../say";
import { Codes } from "./codes";
import { org, OrgChoice } from "./org";
import { Products } from "./products";
import { Publishers } from "./publishers";
import { say } from "./say";
import { Team } from "./team";
import { Usage } from "./usage";

export function Overview() {
  return (
    <>
      <Heading title={store("publisher")} />
      <Publishers>
        <Tabbed />
      </Publishers>
    </>
  );
}

function roleIn(at: string): "viewer" | "publisher" | "owner" {
  const role = me.value?.roles[at];
  return role === "owner" || role === "publisher" ? role : "viewer";
}

function Tabbed() {
  const at = org();
  const owners = [
    { name: "codes", label: say("codes"), content: () => <Codes key={at} org={at} /> },
    { name: "usage", label: say("usage"), content: () => <Usage key={at} org={at} /> },
    { name: "team", label: say("team"), content: () => <Team key={at} org={at} /> },
  ];
  return (
    <div class="stack">
      <div class="row between">
        <span class="row">
          <OrgChoice />
          <Chip>{say(`role.${roleIn(at)}`)}</Chip>
        </span>
        <LinkButton href={`/publisher/new?org=${encodeURIComponent(at)}`}>{say("new.product")}</LinkButton>
      </div>
      <Tabs
        label={store("publisher")}
        chosen={query.value.get("tab") ?? "products"}
        onChoose={(tab) => ask({ tab })}
        tabs={[
          { name: "products", label: store("products"), content: () => <Products key={at} org={at} /> },
          ...(owns(at) ? owners : []),
        ]}
      />
    </div>
  );
}
