// One entry of the audit log with all its values and links, at a permanent address.
import type { ComponentChildren } from "preact";
import { useRequest } from "../../shared/request";
import { CopyButton } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { dateTime, number, translator } from "../../shared/i18n";
import { type Entry, linkTo } from "../audit/filter";
import { Actor } from "../audit/actor";
import { type Meta, run } from "../api";
import { addressOf, fieldOf, mayRun, modelOf } from "../models";
import { Changes } from "../record/changes";
import "../audit/audit.css";

const t = translator("audit");

export function AuditEntry({ meta, id }: { meta: Meta; id: string }) {
  const model = modelOf(meta, "audit_entry");
  return model && mayRun(model, "get") ? <LoadedEntry meta={meta} id={id} /> : <NotFound />;
}

function LoadedEntry({ meta, id }: { meta: Meta; id: string }) {
  const entryRequest = useRequest(async (signal) => (await run<Entry>("audit_entry", "get", { id }, signal)).value, [id]);
  return (
    <div class="stack record">
      <nav>
        <a class="all-entries" href="/audit">← {t("all")}</a>
      </nav>
      {entryRequest.state === "failed" && <Heading title={t("entry")} />}
      <RequestResult request={entryRequest}>{(entry) => <EntryDetails meta={meta} entry={entry} />}</RequestResult>
    </div>
  );
}

function EntryDetails({ meta, entry }: { meta: Meta; entry: Entry }) {
  const model = modelOf(meta, entry.model ?? "");
  const record = entry.record_id ?? "";
  const changes = Object.entries(entry.changes ?? {});
  const auditAddress = (filterName: string, value: string) => `/audit?${filterName}=${encodeURIComponent(value)}`;
  return (
    <>
      <Heading title={entry.command ?? t("entry")}>
        <CopyButton text={location.origin + linkTo(entry)} name={t("link.of")} label={t("link")} />
      </Heading>
      <dl class="facts">
        <Fact label={t("at")}>{entry.at && <time dateTime={entry.at}>{dateTime(entry.at)}</time>}</Fact>
        <Fact label={t("who")}>
          <Actor meta={meta} entry={entry} />
        </Fact>
        <Fact label={t("model")}>{model?.label ?? entry.model}</Fact>
        <Fact label={t("record")}>
          {record && (
            <>
              {model && mayRun(model, "get") ? <a href={addressOf(model.name, record)}>{t("to.record")}</a> : record} ·{" "}
              <a href={auditAddress("record", record)}>{t("to.others")}</a>
            </>
          )}
        </Fact>
        <Fact label={t("plan")}>
          {entry.plan_id && <a href={`/approvals?state=decided&plan=${encodeURIComponent(entry.plan_id)}`}>{t("to.plan")}</a>}
        </Fact>
        <Fact label={t("request")}>{entry.request_id && <a href={auditAddress("request", entry.request_id)}>{t("to.request")}</a>}</Fact>
        <Fact label={t("lane")}>{entry.lane !== undefined && number(entry.lane)}</Fact>
        <Fact label={t("number")}>{entry.number !== undefined && number(entry.number)}</Fact>
        <Fact label={t("entry")}>
          <code>{entry.id}</code>
        </Fact>
      </dl>
      <section class="stack" aria-labelledby="changes">
        <h2 id="changes">{t("changes")}</h2>
        {changes.length === 0 ? (
          <p class="quiet">{t("changes.none")}</p>
        ) : (
          <Changes meta={meta} changes={changes.map(([name, [before, after]]) => ({ field: fieldOf(model, name), name, before, after }))} />
        )}
      </section>
    </>
  );
}

/** A value of the entry. A missing or hidden value is omitted, not shown as empty. */
function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  if (children === null || children === undefined || children === false || children === "") {
    return null;
  }
  return (
    <div class="fact">
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
