// The latest activity of people and agents: from the audit log if this person may read it, or else from the proposals.
import type { ComponentChildren } from "preact";
import { relativePast, translator } from "../../shared/i18n";
import { type Entry, linkTo } from "../audit/filter";
import { type Meta, inLanguage, type Row, run } from "../api";
import type { Plan } from "../approvals/plan";
import { kindOf } from "../approvals/plan_title";
import { RecordTitle, targetOf } from "../approvals/record_title";
import { canList, fieldOf, modelOf, titleOf, addressOf, mayRun, workflowField } from "../models";
import { referencedRecord } from "../referenced_records";
import { AgentAvatar, Avatar } from "../values/avatar";
import { StateChip } from "../values/options";
import { Value } from "../values/value";
import { Widget } from "../widgets/widget";

const t = translator("home");

export const ACTIVITY_ROWS = 7;

export interface Event {
  id: string;
  at: string;
  /** The person's id. */
  person: string | null;
  agent: string | null;
  command: string;
  did: "did" | "proposed" | "approved" | "rejected";
  model: string;
  record: string;
  href: string;
  change: { field: string; before: unknown; after: unknown } | null;
}

function canReadAudit(meta: Meta): boolean {
  const audit = modelOf(meta, "audit_entry");
  return audit !== undefined && canList(audit) && fieldOf(audit, "at") !== undefined;
}

/** A line of the activity feed on the first page. */
export interface FeedEntry {
  at: string;
  /** The person's name, or their id. */
  by: string | null;
  agent: string | null;
  command: string;
  record: { model: string; id: string };
}

export function ofFeed({ at, by, agent, command, record }: FeedEntry): Event {
  const { model, id } = record;
  return { id: `${at} ${command} ${id}`, at, person: by, agent, command, did: "did", model, record: id, href: addressOf(model, id), change: null };
}

export async function loadActivity(meta: Meta, signal: AbortSignal): Promise<Event[]> {
  if (canReadAudit(meta)) {
    const order = [{ field: "at", dir: "desc" }];
    const entries = await run<Entry[]>("audit_entry", "list", { order, limit: ACTIVITY_ROWS * 3 }, signal);
    return entries.value.filter((entry) => modelOf(meta, entry.model ?? "")).map(ofEntry).slice(0, ACTIVITY_ROWS);
  }
  const order = [{ field: "proposed_at", dir: "desc" }];
  const decidedPlans = await run<Plan[]>("plan", "list", { order, limit: ACTIVITY_ROWS }, signal);
  return decidedPlans.value.map(ofPlan).toSorted((a, b) => b.at.localeCompare(a.at));
}

function ofEntry(entry: Entry): Event {
  const changes = Object.entries(entry.changes ?? {}).filter(([name]) => name !== "id");
  const [field, [valueBefore, valueAfter]] = changes[0] ?? ["", [null, null]];
  const isMaking = entry.command?.endsWith(".create") || entry.command?.endsWith(".delete");
  return {
    id: entry.id,
    at: entry.at,
    person: entry.user_id ?? null,
    agent: entry.agent ?? null,
    command: entry.command ?? "",
    did: "did",
    model: entry.model ?? "",
    record: entry.record_id ?? "",
    href: linkTo(entry),
    change: field && !isMaking ? { field, before: valueBefore, after: valueAfter } : null,
  };
}

function ofPlan(plan: Plan): Event {
  const { model, id } = targetOf(plan);
  const isDecided = typeof plan["decided_at"] === "string";
  const [onlyChange, ...otherChanges] = plan.diff.filter((change) => change.before !== null && change.after !== null);
  return {
    id: plan.id,
    at: isDecided ? String(plan["decided_at"]) : plan.proposed_at,
    person: String((isDecided ? plan["decided_by"] : plan["person"]) ?? "") || null,
    agent: isDecided ? null : plan.agent,
    command: plan.command,
    did: isDecided ? (plan.state === "rejected" ? "rejected" : "approved") : "proposed",
    model,
    record: id,
    href: `/approvals?plan=${encodeURIComponent(plan.id)}${isDecided ? "&state=decided" : ""}`,
    change: onlyChange && otherChanges.length === 0 ? onlyChange : null,
  };
}

export function Activity({ meta, events, now_ms }: { meta: Meta; events: readonly Event[]; now_ms: number }) {
  const link = canReadAudit(meta) ? { href: "/audit", label: t("audit") } : { href: "/approvals?state=decided", label: t("decided") };
  return (
    <Widget title={t("activity")} link={link}>
      <ul class="feed">
        {events.map((feedEvent) => (
          <Line key={feedEvent.id} {...{ meta, now_ms }} event={feedEvent} />
        ))}
      </ul>
    </Widget>
  );
}

function Line({ meta, event, now_ms }: { meta: Meta; event: Event; now_ms: number }) {
  const { at, change } = event;
  const field = change && fieldOf(modelOf(meta, event.model), change.field);
  const person = <Person meta={meta} id={event.person} />;
  return (
    <li>
      {event.agent ? <AgentAvatar /> : <PersonAvatar meta={meta} id={event.person} />}
      <div>
        <p>
          {event.agent ? (
            <>
              <b>{event.agent}</b> {t("for")} {person}
            </>
          ) : (
            <b>{person}</b>
          )}{" "}
          <ActivityLine meta={meta} event={event} />{" "}
          <time dateTime={at}>{relativePast(at, now_ms)}</time>
        </p>
        {change && field && (
          <p class="feed-change">
            <span class="chip plain">{field.label}</span>
            <span class="quiet">
              <Value {...{ meta, field }} value={change.before} />
            </span>
            <span aria-hidden="true">→</span>
            <span class="now">
              <Value {...{ meta, field }} value={change.after} />
            </span>
          </p>
        )}
      </div>
    </li>
  );
}

/** An event in words: created, changed, deleted, moved to a state, or the name of the command; and its record. */
function ActivityLine({ meta, event }: { meta: Meta; event: Event }) {
  const title = <Title meta={meta} event={event} />;
  const model = modelOf(meta, event.model);
  const [, verb = ""] = event.command.split(".");
  if (event.did === "did" && (verb === "create" || verb === "update" || verb === "delete")) {
    return <>{fillText(t(`line.${verb}`), null, title)}</>;
  }
  const targetState = model?.actions.find((action) => action.id === event.command)?.to;
  const state = model && workflowField(model);
  if (event.did === "did" && targetState && state) {
    return <>{fillText(t("line.moved"), <StateChip field={state} value={targetState} />, title)}</>;
  }
  return <>{fillText(t(`line.${event.did}`), <a href={event.href}>{actionOf(meta, event.command)}</a>, title)}</>;
}

/** Insert elements for `{what}` and `{record}` into a text. */
function fillText(text: string, subject: ComponentChildren, record: ComponentChildren): ComponentChildren {
  return text.split(/(\{what\}|\{record\})/).map((part) => (part === "{what}" ? subject : part === "{record}" ? record : part));
}

/** The label of a command: "Mark as won". */
function actionOf(meta: Meta, command: string): string {
  const model = modelOf(meta, command.split(".")[0] ?? "");
  const details = model?.command_details?.find((commandDetail) => commandDetail.id === command);
  return inLanguage(details?.labels, kindOf(meta, { command } as Plan));
}

function Title({ meta, event }: { meta: Meta; event: Event }) {
  const model = modelOf(meta, event.model);
  if (!model || !event.record) {
    return null;
  }
  const title = <RecordTitle model={model} recordRef={{ model: event.model, id: event.record }} isBare />;
  return mayRun(model, "get") ? <a href={addressOf(event.model, event.record)}>{title}</a> : <b>{title}</b>;
}

const ID = /^[0-9a-f]{24}$/;

function nameOf(meta: Meta, id: string | null): string {
  const model = modelOf(meta, "user");
  const row: Row | null = model && id && ID.test(id) ? referencedRecord(model, id).value : null;
  return row && model ? String(row["name"] ?? titleOf(model, row)) : id && !ID.test(id) ? id : "";
}

function Person({ meta, id }: { meta: Meta; id: string | null }) {
  return <>{nameOf(meta, id) || t("someone")}</>;
}

function PersonAvatar({ meta, id }: { meta: Meta; id: string | null }) {
  return <Avatar name={nameOf(meta, id) || "?"} />;
}
