// The webhooks of an organisation: their state, a test event, a new secret, and removal.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { urlFor } from "../../shared/client";
import { Button, CopyButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Dialog } from "../../shared/components/dialog";
import { FormErrors, TextField } from "../../shared/components/field";
import { Empty, FailureNotice, RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { sinceWhen, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { errorOfField, idempotencyHeader, requireFields, useSubmit } from "./form";
import { useStoredInput } from "../stored_input";

const t = translator("publisher");

type Webhook = Schemas["Webhook"];
type EventType = NonNullable<Schemas["NewWebhook"]["types"]>[number];

const TYPES: readonly EventType[] = ["release.published", "release.yanked", "job.ended", "key.added", "agent.added"];

export function Webhooks({ org }: { org: string }) {
  const request = useRequest(
    async (signal) => (await api.get("/api/v1/org/webhooks", { query: { org }, signal })).value,
    [org],
    { keepsPrevious: true },
  );
  const [webhookToRemove, setWebhookToRemove] = useState<Webhook | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const { problem, run } = useSubmit();
  const ping = (webhook: Webhook) =>
    void run(async () => {
      await api.post("/api/v1/org/webhooks/{webhook_id}/ping", { values: { webhook_id: webhook.id }, query: { org }, headers: idempotencyHeader() });
      showToast(t("webhook.pinged"));
    });
  const rotate = (webhook: Webhook) =>
    void run(async () => {
      const reply = await api.post("/api/v1/org/webhooks/{webhook_id}/rotate", { values: { webhook_id: webhook.id }, query: { org }, headers: idempotencyHeader() });
      setSecret(reply.value.secret ?? null);
    });
  return (
    <div class="stack">
      <p class="prose">{t("webhook.text")}</p>
      {problem && <FailureNotice problem={problem} />}
      {secret && <WebhookSecret secret={secret} />}
      <RequestResult request={request}>
        {(rows) =>
          rows.length ? (
            <Table
              caption={t("webhook.of", { org })}
              rows={rows}
              keyOf={(row) => row.id}
              columns={[
                { name: "url", label: t("webhook.url"), cell: (row) => <span class="written">{row.url}</span> },
                { name: "types", label: t("webhook.types"), cell: (row) => row.types?.join(", ") ?? t("webhook.all") },
                { name: "state", label: t("status"), cell: (row) => <WebhookState webhook={row} /> },
                {
                  name: "actions",
                  label: t("webhook.actions"),
                  cell: (row) => (
                    <span class="row">
                      <Button tight onClick={() => ping(row)}>
                        {t("webhook.ping")} <span class="hidden-text">{row.url}</span>
                      </Button>
                      <Button tight onClick={() => rotate(row)}>
                        {t("webhook.rotate")} <span class="hidden-text">{row.url}</span>
                      </Button>
                      <Button tight variant="risky" onClick={() => setWebhookToRemove(row)}>
                        {t("remove")} <span class="hidden-text">{row.url}</span>
                      </Button>
                    </span>
                  ),
                },
              ]}
            />
          ) : (
            <Empty title={t("webhook.none")} />
          )
        }
      </RequestResult>
      <NewWebhook org={org} onMade={(secret) => (setSecret(secret), request.reload())} />
      <RemovalDialog org={org} webhook={webhookToRemove} onClose={() => setWebhookToRemove(null)} onDone={request.reload} />
    </div>
  );
}

/** The state of deliveries to the webhook. */
function WebhookState({ webhook }: { webhook: Webhook }) {
  if (webhook.failures > 0) {
    return <Chip tone="bad">{t("webhook.failing", { n: webhook.failures })}</Chip>;
  }
  return webhook.delivered_at ? <Chip tone="good">{t("webhook.delivered", { when: sinceWhen(webhook.delivered_at) })}</Chip> : <Chip>{t("webhook.unused")}</Chip>;
}

function WebhookSecret({ secret }: { secret: string }) {
  return (
    <section class="panel-box form-section" role="status">
      <p>{t("webhook.secret")}</p>
      <p class="row">
        <code class="written">{secret}</code>
        <CopyButton text={secret} name={t("client.secret")} />
      </p>
    </section>
  );
}

function NewWebhook({ org, onMade }: { org: string; onMade: (secret: string | null) => void }) {
  const { value, change, forget } = useStoredInput<{ url: string; types: readonly EventType[] }>(`webhook of ${org}`, { url: "", types: [] });
  const { isBusy, problem, run } = useSubmit();
  const body = { url: value.url.trim(), types: [...value.types] };
  const add = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      requireFields({ url: [t("webhook.url"), value.url] });
      const reply = await api.post("/api/v1/org/webhooks", { query: { org }, body, headers: idempotencyHeader() });
      change({ url: "", types: [] });
      forget();
      onMade(reply.value.secret ?? null);
    });
  };
  const setTypeSelected = (type: EventType, isOn: boolean) => change({ ...value, types: TYPES.filter((eventType) => (eventType === type ? isOn : value.types.includes(eventType))) });
  return (
    <form class="form panel-box form-section" onSubmit={add} noValidate>
      <h2>{t("webhook.new")}</h2>
      <FormErrors problem={problem} />
      <TextField
        name="url"
        type="url"
        label={t("webhook.url")}
        help={t("webhook.url.help")}
        required
        value={value.url}
        error={errorOfField(problem, "url")}
        onInput={(event) => change({ ...value, url: event.currentTarget.value })}
      />
      <fieldset>
        <legend>{t("webhook.types")}</legend>
        <p class="help">{t("webhook.types.help")}</p>
        {TYPES.map((eventType) => (
          <label class="check row" key={eventType}>
            <input type="checkbox" checked={value.types.includes(eventType)} onChange={(event) => setTypeSelected(eventType, event.currentTarget.checked)} />
            <span>
              <code>{eventType}</code>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="row">
        <Button type="submit" variant="strong" busy={isBusy}>
          {t("webhook.add")}
        </Button>
        <Curl method="POST" path={`/api/v1/org/webhooks?org=${encodeURIComponent(org)}`} body={body} />
      </div>
    </form>
  );
}

function RemovalDialog({ org, webhook, onClose, onDone }: { org: string; webhook: Webhook | null; onClose: () => void; onDone: () => void }) {
  const { isBusy, problem, run } = useSubmit();
  const values = { webhook_id: webhook?.id ?? "" };
  const remove = () =>
    void run(async () => {
      await api.delete("/api/v1/org/webhooks/{webhook_id}", { values, query: { org }, headers: idempotencyHeader() });
      onClose();
      onDone();
    });
  return (
    <Dialog
      title={t("webhook.remove")}
      isOpen={webhook !== null}
      isCautious
      onClose={onClose}
      actions={
        <>
          <Button variant="risky" busy={isBusy} onClick={remove}>
            {t("remove")}
          </Button>
          <Curl method="DELETE" path={urlFor("/api/v1/org/webhooks/{webhook_id}", values, { org })} />
        </>
      }
    >
      <p>{t("webhook.remove.text", { url: webhook?.url ?? "" })}</p>
      {problem && <FailureNotice problem={problem} />}
    </Dialog>
  );
}
