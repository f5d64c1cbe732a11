// The work app's pages. A new one: its address in paths.json, its line here, its file in pages/.
import { effect } from "@preact/signals";
import { type ComponentType, Fragment, type JSX } from "preact";
import { Failed, Loading } from "../shared/components/states";
import { mount } from "../shared/mount";
import { Problem } from "../shared/problem";
import { isSignedIn } from "../shared/session";
import type { Meta } from "./api";
import { pollPendingCount } from "./approvals/pending_count";
import { SessionEnded } from "./session_ended";
import { watchVisits } from "./home/recent";
import { lazyComponent } from "./lazy_component";
import { SignIn } from "./pages/sign_in";
import { currentUser, loadCurrentUser } from "./current_user";
import { Frame } from "./shell/frame";
import { newRecordRequest } from "./values/new_record_request";
import { addIcons } from "../shared/components/icon";
import { ICONS } from "./icons";
import "./work.css";

type OfModel = ComponentType<{ meta: Meta; name: string }>;

const Design = lazyComponent(async () => (await import("../shared/design")).Design);
const Home = lazyComponent(async () => (await import("./pages/home")).Home);
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

function ofModel(Page: OfModel) {
  return ({ model = "" }: { [name: string]: string }) => (
    <Personal page={(meta) => <Page key={model} meta={meta} name={model} />} />
  );
}

effect(() => {
  const found = currentUser.value;
  if (found === null || typeof found !== "object" || !("models" in found)) {
    return undefined;
  }
  const ends = [pollPendingCount(found), watchVisits(found.caller.name)];
  return () => ends.forEach((each) => each());
});
void loadCurrentUser();
addIcons(ICONS);
mount(
  "Countersign",
  [
    { template: "/", page: () => <Personal page={(meta) => <Home meta={meta} />} /> },
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
  <Frame />,
);
