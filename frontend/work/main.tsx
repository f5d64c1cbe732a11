// The work app's pages. To add a page, add its address to paths.json, a line here and a file in pages/.
import { effect } from "@preact/signals";
import { type ComponentType, Fragment, type JSX } from "preact";
import { FailureNotice, Loading } from "../shared/components/states";
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

type ModelPage = ComponentType<{ meta: Meta; name: string }>;

const Design = lazyComponent(async () => (await import("../shared/design")).Design);
const Home = lazyComponent(async () => (await import("./pages/home")).Home);
const List: ModelPage = lazyComponent(async () => (await import("./pages/list")).List);
const NewRecord: ModelPage = lazyComponent(async () => (await import("./pages/new")).NewRecord);
const Import: ModelPage = lazyComponent(async () => (await import("./pages/import")).Import);
const Board: ModelPage = lazyComponent(async () => (await import("./pages/board")).Board);
const Record = lazyComponent(async () => (await import("./pages/record")).Record);
const Approvals = lazyComponent(async () => (await import("./pages/approvals")).Approvals);
const Agents = lazyComponent(async () => (await import("./pages/agents")).Agents);
const Users = lazyComponent(async () => (await import("./pages/users")).Users);
const DataMap = lazyComponent(async () => (await import("./pages/data_map")).DataMap);
const Audit = lazyComponent(async () => (await import("./pages/audit")).Audit);
const AuditEntry = lazyComponent(async () => (await import("./pages/audit_entry")).AuditEntry);
const Account = lazyComponent(async () => (await import("./pages/account")).Account);
const Connect = lazyComponent(async () => (await import("./pages/connect")).Connect);
const NewRecordDialog = lazyComponent(async () => (await import("./record/new_record_dialog")).NewRecordDialog);
const Dashboard = lazyComponent(async () => (await import("./pages/dashboard")).Dashboard);

/** A page for people who are signed in. Anyone else sees the sign-in page first. */
function RequireSignIn({ page }: { page: (meta: Meta) => JSX.Element }) {
  const user = currentUser.value;
  if (user === null) {
    return <Loading />;
  }
  if (user === "anonymous") {
    return <SignIn />;
  }
  if (user instanceof Problem) {
    return <FailureNotice problem={user} onRetry={loadCurrentUser} />;
  }
  return (
    <>
      {isSignedIn.value === false && <SessionEnded name={user.caller.name} />}
      <Fragment key="page">{page(user)}</Fragment>
      {newRecordRequest.value && <NewRecordDialog meta={user} />}
    </>
  );
}

function modelPage(Page: ModelPage) {
  return ({ model = "" }: { [name: string]: string }) => (
    <RequireSignIn page={(meta) => <Page key={model} meta={meta} name={model} />} />
  );
}

effect(() => {
  const user = currentUser.value;
  if (user === null || typeof user !== "object" || !("models" in user)) {
    return undefined;
  }
  const stopFunctions = [pollPendingCount(user), watchVisits(user.caller.name)];
  return () => stopFunctions.forEach((stopFunction) => stopFunction());
});
void loadCurrentUser();
addIcons(ICONS);
mount(
  "Countersign",
  [
    { template: "/", page: () => <RequireSignIn page={(meta) => <Home meta={meta} />} /> },
    { template: "/signin", page: () => <SignIn /> },
    { template: "/models/{model}", page: modelPage(List) },
    { template: "/models/{model}/new", page: modelPage(NewRecord) },
    { template: "/models/{model}/import", page: modelPage(Import) },
    { template: "/models/{model}/board", page: modelPage(Board) },
    {
      template: "/models/{model}/records/{id}",
      page: ({ model, id }) => (
        <RequireSignIn page={(meta) => <Record key={`${model}/${id}`} meta={meta} name={model ?? ""} id={id ?? ""} />} />
      ),
    },
    { template: "/approvals", page: () => <RequireSignIn page={(meta) => <Approvals meta={meta} />} /> },
    { template: "/agents", page: () => <RequireSignIn page={(meta) => <Agents meta={meta} />} /> },
    { template: "/users", page: () => <RequireSignIn page={(meta) => <Users meta={meta} />} /> },
    { template: "/data", page: () => <RequireSignIn page={(meta) => <DataMap meta={meta} />} /> },
    { template: "/dashboard", page: () => <RequireSignIn page={(meta) => <Dashboard meta={meta} />} /> },
    { template: "/connect", page: () => <RequireSignIn page={(meta) => <Connect meta={meta} />} /> },
    { template: "/account", page: () => <RequireSignIn page={(meta) => <Account meta={meta} />} /> },
    { template: "/audit", page: () => <RequireSignIn page={(meta) => <Audit meta={meta} />} /> },
    { template: "/audit/{id}", page: ({ id }) => <RequireSignIn page={(meta) => <AuditEntry key={id} meta={meta} id={id ?? ""} />} /> },
    { template: "/design", page: () => <Design /> },
  ],
  <Frame />,
);
