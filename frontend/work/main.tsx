// The work app's pages. A new one: its address in paths.json, its line here, its file in pages/.
import { effect } from "@preact/signals";
import { type ComponentType, Fragment, type JSX } from "preact";
import { Button } from "../shared/components/button";
import { siteState } from "../shared/components/heading";
import { Failed, Loading } from "../shared/components/states";
import { mountApp } from "../shared/entry";
import { Problem } from "../shared/problem";
import { isSignedIn } from "../shared/session";
import { number, translator } from "../shared/i18n";
import type { Meta } from "./api";
import { countWaiting } from "./approvals/waiting";
import { Ended } from "./ended";
import { later } from "./later";
import { canList, modelOf } from "./models";
import { Palette } from "./palette/opener";
import { Models } from "./pages/models";
import { SignIn } from "./pages/sign_in";
import { known, look, signOut } from "./person";
import { managesPeople } from "./users/people";
import { creating } from "./values/creating";
import "./work.css";

const tCommon = translator("common");
const t = translator("work");

type OfModel = ComponentType<{ meta: Meta; name: string }>;

const Design = later(async () => (await import("../shared/design")).Design);
const List: OfModel = later(async () => (await import("./pages/list")).List);
const New: OfModel = later(async () => (await import("./pages/new")).New);
const Import: OfModel = later(async () => (await import("./pages/import")).Import);
const Board: OfModel = later(async () => (await import("./pages/board")).Board);
const Record = later(async () => (await import("./pages/record")).Record);
const Approvals = later(async () => (await import("./pages/approvals")).Approvals);
const Agents = later(async () => (await import("./pages/agents")).Agents);
const Users = later(async () => (await import("./pages/users")).Users);
const Audit = later(async () => (await import("./pages/audit")).Audit);
const AuditEntry = later(async () => (await import("./pages/audit_entry")).AuditEntry);
const Connect = later(async () => (await import("./pages/connect")).Connect);
const CreateInPlace = later(async () => (await import("./record/creating")).CreateInPlace);
const Dashboard = later(async () => (await import("./pages/dashboard")).Dashboard);

/** A page for whoever is signed in; who is not gets there by signing in. */
function Personal({ page }: { page: (meta: Meta) => JSX.Element }) {
  const found = known.value;
  if (found === null) {
    return <Loading />;
  }
  if (found === "nobody") {
    return <SignIn />;
  }
  if (found instanceof Problem) {
    return <Failed problem={found} onRetry={look} />;
  }
  return (
    <>
      {isSignedIn.value === false && <Ended name={found.caller.name} />}
      <Fragment key="page">{page(found)}</Fragment>
      {creating.value && <CreateInPlace meta={found} />}
    </>
  );
}

function End() {
  const found = known.value;
  if (found === null || found === "nobody" || found instanceof Problem) {
    return null;
  }
  return (
    <>
      <Palette meta={found} />
      <span class="small quiet">{t("signed.as", { name: found.caller.name })}</span>
      <Button onClick={signOut}>{tCommon("sign.out")}</Button>
    </>
  );
}

function ofModel(Page: OfModel) {
  return ({ model = "" }: { [name: string]: string }) => (
    <Personal page={(meta) => <Page key={model} meta={meta} name={model} />} />
  );
}

/** The places of the head; people and the audit only for those who may manage or read them. */
function places(): [address: string, label: string][] {
  const found = known.value;
  const meta = found !== null && typeof found === "object" && "models" in found ? found : null;
  const audit = meta ? modelOf(meta, "audit_entry") : undefined;
  return [
    ["/", t("models")],
    ["/approvals", siteState.waiting.value > 0 ? `${t("approvals")} (${number(siteState.waiting.value)})` : t("approvals")],
    ["/dashboard", t("dashboard")],
    ["/agents", t("agents")],
    ["/connect", t("connect")],
    ...(meta && managesPeople(meta) ? ([["/users", t("users")]] as [string, string][]) : []),
    ...(audit && canList(audit) ? ([["/audit", t("audit")]] as [string, string][]) : []),
  ];
}

effect(() => {
  const found = known.value;
  return found !== null && typeof found === "object" && "models" in found ? countWaiting(found) : undefined;
});
void look();
mountApp({
  title: "Countersign",
  routes: [
    { template: "/", page: () => <Personal page={(meta) => <Models meta={meta} />} /> },
    { template: "/signin", page: () => <SignIn /> },
    { template: "/models/{model}", page: ofModel(List) },
    { template: "/models/{model}/new", page: ofModel(New) },
    { template: "/models/{model}/import", page: ofModel(Import) },
    { template: "/models/{model}/board", page: ofModel(Board) },
    {
      template: "/models/{model}/records/{id}",
      page: ({ model, id }) => (
        <Personal page={(meta) => <Record key={`${model}/${id}`} meta={meta} name={model ?? ""} id={id ?? ""} />} />
      ),
    },
    { template: "/approvals", page: () => <Personal page={(meta) => <Approvals meta={meta} />} /> },
    { template: "/agents", page: () => <Personal page={(meta) => <Agents meta={meta} />} /> },
    { template: "/users", page: () => <Personal page={(meta) => <Users meta={meta} />} /> },
    { template: "/dashboard", page: () => <Personal page={(meta) => <Dashboard meta={meta} />} /> },
    { template: "/connect", page: () => <Personal page={(meta) => <Connect meta={meta} />} /> },
    { template: "/audit", page: () => <Personal page={(meta) => <Audit meta={meta} />} /> },
    { template: "/audit/{id}", page: ({ id }) => <Personal page={(meta) => <AuditEntry key={id} meta={meta} id={id ?? ""} />} /> },
    { template: "/design", page: () => <Design /> },
  ],
  places,
  End,
});
