// OAuth clients of the organisation. The secret of a new client is shown once.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { urlFor } from "../../shared/client";
import { Button, CopyButton } from "../../shared/components/button";
import { FormErrors, TextField } from "../../shared/components/field";
import { RequestResult, Empty, FailureNotice } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { date, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { errorOfField, idempotencyHeader, requireFields, useSubmit } from "./form";


const t = translator("publisher");

type Scope = Schemas["NewClient"]["scopes"][number];
type Client = Schemas["Client"];

const SCOPES = ["read:products", "write:products", "read:releases", "write:releases", "read:library", "admin:org"] as const;

export function Clients({ org }: { org: string }) {
  const request = useRequest(
    async (signal) => (await api.get("/api/v1/org/clients", { query: { org }, signal })).value,
    [org],
    { keepsPrevious: true },
  );
  const { problem, run } = useSubmit();
  const remove = (id: string) =>
    void run(async () => {
      await api.delete("/api/v1/org/clients", { query: { org, client_id: id }, headers: idempotencyHeader() });
      request.reload();
    });
  return (
    <>
      <h2>{t("clients")}</h2>
      {problem && <FailureNotice problem={problem} />}
      <RequestResult request={request}>
        {(rows) =>
          rows.length ? (
            <Table
              caption={t("clients.of", { org })}
              rows={rows}
              keyOf={(row) => row.client_id}
              columns={[
                { name: "name", label: t("name"), cell: (row) => row.name },
                { name: "id", label: t("client.id"), cell: (row) => <code>{row.client_id}</code> },
                { name: "scopes", label: t("scopes"), cell: (row) => row.scopes.join(", ") },
                { name: "since", label: t("since"), cell: (row) => date(row.created_at) },
                {
                  name: "remove",
                  label: t("remove"),
                  cell: (row) => (
                    <span class="row">
                      <Button variant="risky" tight onClick={() => remove(row.client_id)}>
                        {t("remove")} <span class="hidden-text">{row.name}</span>
                      </Button>
                      <Curl method="DELETE" path={urlFor("/api/v1/org/clients", {}, { org, client_id: row.client_id })} />
                    </span>
                  ),
                },
              ]}
            />
          ) : (
            <Empty title={t("clients.none")} />
          )
        }
      </RequestResult>
      <NewClient org={org} onDone={request.reload} />
    </>
  );
}

function NewClient({ org, onDone }: { org: string; onDone: () => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read:products"]);
  const [newClient, setNewClient] = useState<Client | null>(null);
  const { isBusy, problem, run } = useSubmit();
  const add = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      requireFields({ name: [t("name"), name] });
      const body = { name, scopes: [...scopes], redirect_uris: [], implicit: false };
      setNewClient((await api.post("/api/v1/org/clients", { query: { org }, body, headers: idempotencyHeader() })).value);
      onDone();
    });
  };
  return (
    <form class="form" onSubmit={add} noValidate>
      <h3>{t("client.add")}</h3>
      <FormErrors problem={problem} />
      <TextField
        name="name"
        label={t("name")}
        required
        value={name}
        error={errorOfField(problem, "name")}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <fieldset>
        <legend>{t("scopes")}</legend>
        {SCOPES.map((scopeName) => (
          <label class="check row" key={scopeName}>
            <input
              type="checkbox"
              checked={scopes.includes(scopeName)}
              onChange={(event) =>
                setScopes(event.currentTarget.checked ? [...scopes, scopeName] : scopes.filter((scope) => scope !== scopeName))
              }
            />
            <span>
              <code>{scopeName}</code> <span class="small quiet">{t(`scope.${scopeName}`)}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="row">
        <Button type="submit" busy={isBusy}>
          {t("client.add")}
        </Button>
        <Curl method="POST" path={urlFor("/api/v1/org/clients", {}, { org })} body={{ name, scopes }} />
      </div>
      {newClient?.client_secret && (
        <div class="notice stack" role="status">
          <strong>{t("client.once")}</strong>
          <span class="row">
            <code class="command">{newClient.client_id}</code>
            <CopyButton text={newClient.client_id} name={t("client.id")} />
          </span>
          <span class="row">
            <code class="command">{newClient.client_secret}</code>
            <CopyButton text={newClient.client_secret} name={t("client.secret")} />
          </span>
        </div>
      )}
    </form>
  );
}
