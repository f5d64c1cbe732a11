// The entries of the audit log as rows. A row opens to show the changes, with links to the record and the entry.
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { dateTime, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { RecordTitle } from "../approvals/record_title";
import { addressOf, fieldOf, mayRun, modelOf } from "../models";
import { Changes } from "../record/changes";
import { Actor } from "./actor";
import { type Entry, linkTo } from "./filter";

const t = translator("audit");

const COLUMNS = 6;

export function EntryRows({ meta, entries }: { meta: Meta; entries: readonly Entry[] }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const turn = (id: string) => {
    const newOpen = new Set(open);
    if (!newOpen.delete(id)) {
      newOpen.add(id);
    }
    setOpen(newOpen);
  };
  return (
    <div class="log-wrap" tabIndex={0} role="region" aria-label={t("title")}>
      <table class="mini audit-rows">
        <thead>
          <tr>
            <th scope="col">{t("at")}</th>
            <th scope="col">{t("who")}</th>
            <th scope="col">{t("command")}</th>
            <th scope="col">{t("target")}</th>
            <th scope="col">{t("fields")}</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {entries.map((listedEntry) => {
            const isOpen = open.has(listedEntry.id);
            return (
              <Fragment key={listedEntry.id}>
                <tr class={isOpen ? "is-open" : undefined} onDblClick={() => turn(listedEntry.id)}>
                  <th scope="row">
                    <a href={linkTo(listedEntry)}>
                      <time dateTime={listedEntry.at}>{listedEntry.at ? dateTime(listedEntry.at) : listedEntry.id.slice(0, 8)}</time>
                    </a>
                  </th>
                  <td>
                    <Actor meta={meta} entry={listedEntry} />
                  </td>
                  <td>
                    <code>{listedEntry.command ?? "–"}</code>
                  </td>
                  <td class="cut">
                    <Target meta={meta} entry={listedEntry} />
                  </td>
                  <td class="cut quiet">{(listedEntry.fields ?? "").replaceAll(",", ", ")}</td>
                  <td class="opener">
                    <button
                      type="button"
                      class="button plain square tight"
                      aria-expanded={isOpen}
                      aria-label={t("expand", { command: listedEntry.command ?? "", when: listedEntry.at ? dateTime(listedEntry.at) : "" })}
                      onClick={() => turn(listedEntry.id)}
                    >
                      <Icon name={isOpen ? "chevron-down" : "chevron-right"} size="s" />
                    </button>
                  </td>
                </tr>
                {isOpen && (
                  <tr class="entry-detail">
                    <td colSpan={COLUMNS}>
                      <Detail meta={meta} entry={listedEntry} />
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Target({ meta, entry }: { meta: Meta; entry: Entry }) {
  const model = modelOf(meta, entry.model ?? "");
  if (!model) {
    return <>{entry.model ?? "–"}</>;
  }
  return (
    <>
      <span class="quiet">{model.label}</span> {entry.record_id && mayRun(model, "get") && <RecordTitle model={model} recordRef={{ model: model.name, id: entry.record_id }} isBare />}
    </>
  );
}

function Detail({ meta, entry }: { meta: Meta; entry: Entry }) {
  const model = modelOf(meta, entry.model ?? "");
  const changes = Object.entries(entry.changes ?? {});
  const auditAddress = (filterName: string, value: string) => `/audit?${filterName}=${encodeURIComponent(value)}`;
  return (
    <>
      {changes.length === 0 ? (
        <p class="quiet">{t("changes.none")}</p>
      ) : (
        <Changes meta={meta} changes={changes.map(([name, [before, after]]) => ({ field: fieldOf(model, name), name, before, after }))} />
      )}
      <p class="entry-links">
        {entry.record_id && model && mayRun(model, "get") && <a href={addressOf(model.name, entry.record_id)}>{t("to.record")}</a>}
        {entry.record_id && <a href={auditAddress("record", entry.record_id)}>{t("to.others")}</a>}
        {entry.plan_id && <a href={`/approvals?state=decided&plan=${encodeURIComponent(entry.plan_id)}`}>{t("to.plan")}</a>}
        {entry.request_id && <a href={auditAddress("request", entry.request_id)}>{t("to.request")}</a>}
        <a href={linkTo(entry)}>{t("entry")}</a>
      </p>
    </>
  );
}
