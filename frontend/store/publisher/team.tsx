// The members of the organisation and its OAuth clients.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { urlFor } from "../../shared/client";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { FormErrors, SelectField, TextField } from "../../shared/components/field";
import { RequestResult, Empty, FailureNotice } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { date, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { me } from "../me";
import { Clients } from "./clients";
import { errorOfField, idempotencyHeader, requireFields, useSubmit } from "./form";


const t = translator("publisher");

type Role = Schemas["NewMember"]["role"];

const ROLES = ["viewer", "publisher", "owner"] as const;

export function Team({ org }: { org: string }) {
  const request = useRequest(
    async (signal) => (await api.get("/api/v1/org/members", { query: { org }, signal })).value,
    [org],
    { keepsPrevious: true },
  );
  const [leaving, setLeaving] = useState<string | null>(null);
  return (
    <div class="stack">
      <h2>{t("members")}</h2>
      <RequestResult request={request}>
        {(rows) =>
          rows.length ? (
            <Table
              caption={t("members.of", { org })}
              rows={rows}
              keyOf={(row) => row.email}
              columns={[
                { name: "email", label: t("email"), cell: (row) => row.email },
                { name: "role", label: t("role"), cell: (row) => t(`role.name.${row.role as Role}`) },
                { name: "since", label: t("since"), cell: (row) => date(row.since) },
                {
                  name: "remove",
                  label: t("remove"),
                  // People cannot remove themselves, because they could not return.
                  cell: (row) =>
                    row.email !== me.value?.email && (
                      <Button variant="risky" tight onClick={() => setLeaving(row.email)}>
                        {t("remove")} <span class="hidden-text">{row.email}</span>
                      </Button>
                    ),
                },
              ]}
            />
          ) : (
            <Empty />
          )
        }
      </RequestResult>
      <RemoveMember org={org} email={leaving} onClose={() => setLeaving(null)} onDone={request.reload} />
      <Invite org={org} onDone={request.reload} />
      <Clients org={org} />
    </div>
  );
}

function RemoveMember(props: { org: string; email: string | null; onClose: () => void; onDone: () => void }) {
  const { org, email, onClose, onDone } = props;
  const { isBusy, problem, setProblem, run } = useSubmit();
  const close = () => {
    setProblem(null);
    onClose();
  };
  const query = { org, email: email ?? "" };
  const remove = () =>
    void run(async () => {
      await api.delete("/api/v1/org/members", { query, headers: idempotencyHeader() });
      showToast(t("member.removed", { email: query.email }));
      close();
      onDone();
    });
  return (
    <Dialog
      title={t("member.remove", { email: query.email })}
      isOpen={email !== null}
      onClose={close}
      actions={
        <>
          <Button variant="risky" busy={isBusy} onClick={remove}>
            {t("remove")}
          </Button>
          <Curl method="DELETE" path={urlFor("/api/v1/org/members", {}, query)} />
        </>
      }
    >
      <p>{t("member.remove.text", { org })}</p>
      {problem && <FailureNotice problem={problem} />}
    </Dialog>
  );
}

function Invite({ org, onDone }: { org: string; onDone: () => void }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const { isBusy, problem, run } = useSubmit();
  const add = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      requireFields({ email: [t("email"), email] });
      await api.post("/api/v1/org/members", { query: { org }, body: { email, role }, headers: idempotencyHeader() });
      setEmail("");
      onDone();
    });
  };
  return (
    <form class="form" onSubmit={add} noValidate>
      <h3>{t("member.add")}</h3>
      <FormErrors problem={problem} />
      <TextField
        name="email"
        type="email"
        label={t("email")}
        help={t("member.help")}
        required
        value={email}
        error={errorOfField(problem, "email")}
        onInput={(event) => setEmail(event.currentTarget.value)}
      />
      <SelectField
        name="role"
        label={t("role")}
        value={role}
        options={ROLES.map((role) => [role, t(`role.${role}`)] as const)}
        onChange={(value) => setRole(value as Role)}
      />
      <div class="row">
        <Button type="submit" busy={isBusy}>
          {t("member.add")}
        </Button>
        <Curl method="POST" path={`/api/v1/org/members?org=${encodeURIComponent(org)}`} body={{ email, role }} />
      </div>
    </form>
  );
}
