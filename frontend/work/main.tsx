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
import { pollPendingCount } from "./approvals/pending_count";
import { SessionEnded } from "./session_ended";
import { lazyComponent } from "./lazy_component";
import { canList, modelOf } from "./models";
import { PaletteButton } from "./palette/palette_button";
import { Models } from "./pages/models";
import { SignIn } from "./pages/sign_in";
import { currentUser, loadCurrentUser, signOut } from "./current_user";
import { managesPeople } from "./users/people";
import { newRecordRequest } from "./values/new_record_request";
import { addIcons } from "../shared/components/icon";
import { ICONS } from "./icons";
import "./work.css";

const tCommon = translator("common");
const t = translator("work");

type OfModel = ComponentType<{ meta: Meta; name: string }>;

const Design = lazyComponent(async () => (await import("../shared/design")).Design);
const List: OfModel = lazyComponent(async () => (await import("./pages/list")).List);
const New: OfModel = lazyComponent(async () => (await import("./pages/new")).New);
const Import: OfModel = lazyComponent(async () => (await import("./pages/import")).Import);
const Board: OfModel = lazyComponent(async () => (await import("./pages/board")).Board);
const Record = lazyComponent(async () => (await import("./pages/record")).Record);
const Approvals = lazyComponent(async () => (await import("./pages/approvals")).Approvals);
const Agents = lazyComponent(async () => (await import("./pages/agents")).Agents);
const Users = lazyComponent(async () => (await import("./pages/users")).Users);
const Audit = lazyComponent(async () => (await import("./pages/audit")).Audit);
const AuditEntry = lazyComponent(async () => (await import("./pages/audit_entry")).AuditEntry);
const Connect = lazyComponent(async () => (await import("./pages/connect")).Connect);
const CreateInPlace = lazyComponent(async () => (await import("./record/new_record_dialog")).NewRecordDialog);
const Dashboard = lazyComponent(async () => (await import("./pages/dashboard")).Dashboard);

/** A page for whoever is signed in; who is not gets there by signing in. */
function Personal({ page }: { page: (meta: Meta) => JSX.Element }) {
  const found = currentUser.value;
  if (found === null) {
    return <Loading />;
  }
  if (found === "anonymous") {
    return <SignIn />;
  }
  if (found instanceof Problem) {
    return <Failed problem={found} onRetry={loadCurrentUser} />;
  }
  return (
    <>
      {isSignedIn.value === false && <SessionEnded name={found.caller.name} />}
      <Fragment key="page">{page(found)}</Fragment>
      {newRecordRequest.value && <CreateInPlace meta={found} />}
    </>
  );
}

function End() {
  const found = currentUser.value;
  if (found === null || found === "anonymous" || found instanceof Problem) {
    return null;
  }
  return (
    <>
      <PaletteButton meta={found} />
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
  const found = currentUser.value;
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
  const found = currentUser.value;
  return found !== null && typeof found === "object" && "models" in found ? pollPendingCount(found) : undefined;
});
void loadCurrentUser();
addIcons(ICONS);
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
