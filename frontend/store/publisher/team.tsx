// Who works in the organisation, and which programs act for it.
import { useState } from "preact/hooks";
import { useAsked } from "../../shared/asked";
import { target } from "../../shared/client";
import { Button } from "../../shared/components/button";
import { Faults, SelectField, TextField } from "../../shared/components/field";
import { Answer, Empty, Failed } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { date } from "../../shared/words";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { me } from "../me";
import { Clients } from "./clients";
import { faultAt, once, useDoing } from "./doing";
import { say } from "./say";

type Role = Schemas["NewMember"]["role"];

const ROLES = ["viewer", "publisher", "owner"] as const;

export function Team({ org }: { org: string }) {
  const found = useAsked(
    async (signal) => (await api.get("/api/v1/org/members", { query: { org }, signal })).value,
    [org],
    { keeps: true },
  );
  const { problem, run } = useDoing();
  const remove = (email: string) =>
    void run(async () => {
      await api.delete("/api/v1/org/members", { query: { org, email }, headers: once() });
      found.again();
    });
  return (
    <div class="stack">
      <h2>{say("members")}</h2>
      {problem && <Failed problem={problem} />}
      <Answer of={found}>
        {(rows) =>
          rows.length ? (
            <Table
              caption={say("members.of", { org })}
              rows={rows}
              keyOf={(each) => each.email}
              columns={[
                { name: "email", label: say("email"), cell: (each) => each.email },
                { name: "role", label: say("role"), cell: (each) => say(`role.${each.role as Role}`) },
                { name: "since", label: say("since"), cell: (each) => date(each.since) },
                {
                  name: "remove",
                  label: say("remove"),
                  // Whoever took themselves away could not come back.
                  cell: (each) =>
                    each.email !== me.value?.email && (
                      <span class="row">
                        <Button look="risky" tight onClick={() => remove(each.email)}>
                          {say("remove")} <span class="hidden-text">{each.email}</span>
                        </Button>
                        <Curl method="DELETE" path={target("/api/v1/org/members", {}, { org, email: each.email })} />
                      </span>
                    ),
                },
              ]}
            />
          ) : (
            <Empty />
          )
        }
      </Answer>
      <Invite org={org} onDone={found.again} />
      <Clients org={org} />
    </div>
  );
}

function Invite({ org, onDone }: { org: string; onDone: () => void }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("publisher");
  const { isBusy, problem, run } = useDoing();
  const add = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await api.post("/api/v1/org/members", { query: { org }, body: { email, role }, headers: once() });
      setEmail("");
      onDone();
    });
  };
  return (
    <form class="form" onSubmit={add} noValidate>
      <h3>{say("member.add")}</h3>
      <Faults problem={problem} />
      <TextField
        name="email"
        type="email"
        label={say("email")}
        help={say("member.help")}
        required
        value={email}
        fault={faultAt(problem, "email")}
        onInput={(event) => setEmail(event.currentTarget.value)}
      />
      <SelectField
        name="role"
        label={say("role")}
        value={role}
        options={ROLES.map((each) => [each, say(`role.${each}`)] as const)}
        onChange={(value) => setRole(value as Role)}
      />
      <div class="row">
        <Button type="submit" busy={isBusy}>
          {say("member.add")}
        </Button>
        <Curl method="POST" path={`/api/v1/org/members?org=${encodeURIComponent(org)}`} body={{ email, role }} />
      </div>
    </form>
  );
}
