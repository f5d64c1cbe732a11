// The activity of a token's agent: from the audit log if this person may read it, or else from its plans.
import { useRequest } from "../../shared/request";
import { RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { dateTime, translator } from "../../shared/i18n";
import type { Plan } from "../approvals/plan";
import { type Entry, linkTo } from "../audit/filter";
import { type Meta, type Row, run } from "../api";
import { addressOf, canList, mayRun, modelOf } from "../models";

const tAudit = translator("audit");
const tApprovals = translator("approvals");
const t = translator("connect");

const MAX_SHOWN = 50;

export function AgentActivity({ meta, token }: { meta: Meta; token: Row }) {
  const audit = modelOf(meta, "audit_entry");
  const canRead = audit !== undefined && canList(audit) && audit.fields.some((field) => field.name === "agent_token");
  return (
    <section class="stack" aria-labelledby="calls">
      <h3 id="calls">{t(canRead ? "calls" : "calls.plans")}</h3>
      <p class="quiet">{t(canRead ? "calls.text" : "calls.plans.text")}</p>
      {canRead ? <AuditEntries meta={meta} token={token} /> : <ProposedBy token={token} />}
    </section>
  );
}

function AuditEntries({ meta, token }: { meta: Meta; token: Row }) {
  const input = { filter: [{ field: "agent_token", op: "eq", value: token.id }], order: [{ field: "at", dir: "desc" }], limit: MAX_SHOWN };
  const entryRequest = useRequest((signal) => run<Entry[]>("audit_entry", "list", input, signal), [token.id]);
  const record = (entry: Entry) => {
    const model = modelOf(meta, entry.model ?? "");
    return model && entry.record_id && mayRun(model, "get") ? <a href={addressOf(model.name, entry.record_id)}>{model.label}</a> : (model?.label ?? "–");
  };
  return (
    <RequestResult request={entryRequest}>
      {({ value }) =>
        value.length === 0 ? (
          <p>{t("calls.none")}</p>
        ) : (
          <>
            <Table
              caption={t("calls")}
              rows={value}
              keyOf={(entry) => entry.id}
              columns={[
                { name: "at", label: tAudit("at"), cell: (entry) => <a href={linkTo(entry)}>{dateTime(entry.at)}</a> },
                { name: "command", label: tAudit("command"), cell: (entry) => <code>{entry.command}</code> },
                { name: "record", label: tAudit("model"), cell: record },
              ]}
            />
            <p>
              <a href={`/audit?token=${encodeURIComponent(token.id)}`}>{t("calls.all")}</a>
            </p>
          </>
        )
      }
    </RequestResult>
  );
}

function ProposedBy({ token }: { token: Row }) {
  const input = { filter: [{ field: "agent", op: "eq", value: token["label"] }], order: [{ field: "proposed_at", dir: "desc" }], limit: MAX_SHOWN };
  const planRequest = useRequest((signal) => run<Plan[]>("plan", "list", input, signal), [token.id]);
  return (
    <RequestResult request={planRequest}>
      {({ value }) =>
        value.length === 0 ? (
          <p>{t("calls.none")}</p>
        ) : (
          <Table
            caption={t("calls.plans")}
            rows={value}
            keyOf={(plan) => plan.id}
            columns={[
              { name: "at", label: tAudit("at"), cell: (plan) => <a href={`/approvals?plan=${encodeURIComponent(plan.id)}`}>{dateTime(plan.proposed_at)}</a> },
              { name: "command", label: tAudit("command"), cell: (plan) => <code>{plan.command}</code> },
              { name: "state", label: t("state"), cell: (plan) => tApprovals(`state.${plan.state}` as "state.pending") },
            ]}
          />
        )
      }
    </RequestResult>
  );
}
