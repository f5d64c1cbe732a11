// The timeline of a record: its events with the old and new values that this person may see, comments, and the proposals that
// wait for approval, newest first.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { dateTime, number, plural, translator } from "../../shared/i18n";
import { type Field, type Meta, type Model, run } from "../api";
import type { Plan } from "../approvals/plan";
import { fieldOf, mayRun, nounOf, workflowField } from "../models";
import { AgentAvatar, Avatar } from "../values/avatar";
import { Value } from "../values/value";
import { Changes } from "./changes";
import { CommentItem, NewComment } from "./comment_items";
import { type Comment, loadComments } from "./comments";
import { eventTime } from "./event_time";
import { loadWaitingPlans, WaitingPlan } from "./waiting_plans";

const t = translator("record");

export interface HistoryEntry {
  at: string;
  command: string;
  by: string | null;
  agent: string | null;
  changes: Record<string, [unknown, unknown]>;
  /** The change was not made through Countersign, and happened between this time and `at`. */
  since?: string;
  /** The changed fields of a change that the connected database has recorded, if their values are not known. */
  fields?: string[];
}

/** The loaded items of a record's timeline, newest first. */
export interface LoadedTimeline {
  entries: readonly HistoryEntry[];
  comments: readonly Comment[];
}

const FILTERS = ["all", "people", "agents", "comments"] as const;
type Filter = (typeof FILTERS)[number];

const MAX_ITEMS = 20;
/** The maximum length of a text in a line; longer texts are compared in a table. */
const MAX_INLINE_LENGTH = 60;
/** The maximum number of changes shown at once. An event with more has all of them in a table that opens. */
const MAX_INLINE_CHANGES = 3;

interface Props {
  meta: Meta;
  model: Model;
  id: string;
  revision: number;
  /** The last proposal that was made on this page. A new proposal loads the timeline again. */
  planId: string | null;
  /** Whether only the comments are shown. */
  onlyComments: boolean;
  onLoad: (timeline: LoadedTimeline) => void;
}

export function Timeline({ meta, model, id, revision, planId, onlyComments, onLoad }: Props) {
  const [isExpanded, setExpanded] = useState(false);
  const [chosenFilter, setChosenFilter] = useState<Filter>("all");
  const filter = onlyComments ? "comments" : chosenFilter;
  const timelineRequest = useRequest(
    async (signal) => {
      const history = mayRun(model, "history") ? run<HistoryEntry[]>(model.name, "history", { id }, signal) : null;
      const [loadedComments, entries] = await Promise.all([loadComments(meta, model, id, signal), history]);
      const loadedTimeline = { ...loadedComments, entries: entries?.value ?? [] };
      onLoad(loadedTimeline);
      return loadedTimeline;
    },
    [model.name, id, revision, planId],
    { keepsPrevious: true },
  );
  // Load proposals separately, so that their failure does not hide comments and history, and a new comment does not
  // reload them.
  const plansRequest = useRequest((signal) => loadWaitingPlans(meta, model, id, signal), [model.name, id, revision, planId], { keepsPrevious: true });
  const plans = plansRequest.state === "loaded" ? plansRequest.value : [];
  return (
    <>
      <NewComment {...{ meta, model, id }} onWritten={timelineRequest.reload} />
      <RequestResult request={timelineRequest}>
        {({ entries, comments, me }) => {
          const shownFilters = FILTERS.filter((filter) => filter === "all" || count(filter, entries, plans, comments.length) > 0);
          const eventItems = shownOf(filter, entries).map((entry, index) => ({
            at: entry.at,
            item: <TimelineEvent key={entry.at + index} {...{ meta, model, entry }} />,
          }));
          const commentItems = (filter === "all" || filter === "comments" ? comments : []).map((comment) => ({
            at: comment.written_at,
            item: <CommentItem key={comment.id} {...{ meta, comment }} subject={{ model: model.name, record: id }} isOwn={me !== undefined && comment.author === me} onChanged={timelineRequest.reload} />,
          }));
          const planItems = shownOf(filter, plans).map((plan) => ({ at: plan.proposed_at, item: <WaitingPlan key={plan.id} {...{ meta, plan }} /> }));
          const items = [...planItems, ...eventItems, ...commentItems].sort((item, otherItem) => Date.parse(otherItem.at) - Date.parse(item.at));
          return (
            <>
              {!onlyComments && (shownFilters.includes("agents") || shownFilters.includes("comments")) && (
                <div class="segments timeline-filter" role="group" aria-label={t("history")}>
                  {shownFilters.map((filterName) => (
                    <button key={filterName} type="button" aria-pressed={filter === filterName} onClick={() => setChosenFilter(filterName)}>
                      {t(`history.show.${filterName}`)}
                    </button>
                  ))}
                </div>
              )}
              {items.length === 0 && <p class="quiet timeline-none">{t(onlyComments ? "comments.none" : "history.none")}</p>}
              {model.is_connected && !onlyComments && <p class="quiet">{t("history.coverage")}</p>}
              <ol class="timeline">{(isExpanded ? items : items.slice(0, MAX_ITEMS)).map((item) => item.item)}</ol>
              {!isExpanded && items.length > MAX_ITEMS && (
                <Button tight onClick={() => setExpanded(true)}>
                  {t("history.more", { n: number(items.length) })}
                </Button>
              )}
            </>
          );
        }}
      </RequestResult>
    </>
  );
}

function count(filter: Filter, entries: readonly HistoryEntry[], plans: readonly Plan[], comments: number): number {
  return filter === "comments" ? comments : shownOf(filter, entries).length + shownOf(filter, plans).length;
}

/** The events or proposals that match the filter by author. */
function shownOf<Item extends { agent: string | null }>(filter: Filter, entries: readonly Item[]): readonly Item[] {
  if (filter === "all") {
    return entries;
  }
  return filter === "comments" ? [] : entries.filter((entry) => (entry.agent !== null) === (filter === "agents"));
}

function TimelineEvent({ meta, model, entry }: { meta: Meta; model: Model; entry: HistoryEntry }) {
  const changes = Object.entries(entry.changes).map(([name, [before, after]]) => ({ field: fieldOf(model, name), name, before, after }));
  const isCreation = entry.command.endsWith(".create");
  const areShort = changes.every(({ field, before, after }) => field && isShort(before) && isShort(after));
  const areChangesInline = !isCreation && changes.length <= MAX_INLINE_CHANGES && areShort;
  return (
    <li>
      {entry.agent === null ? <Avatar name={entry.by ?? "–"} /> : <AgentAvatar />}
      <div>
        <p>
          <strong>{authorOf(entry)}</strong>
          {entry.agent !== null && entry.by !== null && ` ${t("history.for", { name: entry.by })}`} {eventText(model, entry)}{" "}
          <time class="quiet" dateTime={entry.at} title={dateTime(entry.at)}>
            {eventTime(entry.at)}
          </time>
          {entry.since !== undefined && <span class="quiet"> {t("history.since", { time: dateTime(entry.since) })}</span>}
        </p>
        {areChangesInline ? (
          changes.map(
            ({ name, field, before, after }) =>
              field && <EventChange key={name} {...{ meta, field, before, after }} hasLabel={changes.length > 1} />,
          )
        ) : (
          changes.length > 0 && (
            <details>
              <summary>{plural(changes.length, t("history.changes.one"), t("history.changes"))}</summary>
              <Changes {...{ meta, changes }} />
            </details>
          )
        )}
      </div>
    </li>
  );
}

/** The person or agent, or another application, with the role of the database if it is known. */
function authorOf({ command, by, agent }: HistoryEntry): string {
  if (!command.startsWith("outside.")) {
    return agent ?? by ?? t("history.someone");
  }
  return by === null ? t("history.outside") : t("history.outside.role", { role: by });
}

function isShort(value: unknown): boolean {
  return String(value ?? "").length <= MAX_INLINE_LENGTH;
}

function EventChange({ meta, field, before, after, hasLabel }: { meta: Meta; field: Field; before: unknown; after: unknown; hasLabel: boolean }) {
  return (
    <p class="event-change">
      {hasLabel && <span class="quiet">{field.label}</span>}
      {before !== null && before !== "" && (
        <>
          <s>
            <Value meta={meta} field={field} value={before} />
          </s>
          <Icon name="arrow-right" size="s" />
        </>
      )}
      <b>
        <Value meta={meta} field={field} value={after} />
      </b>
    </p>
  );
}

/** "changed expected close", "created this lead", or the action by its name. */
function eventText(model: Model, { command, changes, fields = [] }: HistoryEntry): string {
  const names = [...Object.keys(changes), ...fields];
  const label = nounOf(fieldOf(model, names[0] ?? "")?.label ?? "");
  const noun = nounOf(model.label);
  switch (command) {
    case `${model.name}.create`:
    case "outside.create":
      return t("history.did.create", { model: noun });
    case `${model.name}.update`:
    case "outside.change":
      return names.length === 1 && label ? t("history.did.field", { field: label }) : t("history.did.fields", { n: number(names.length) });
    default:
      if (label && names.length === 1 && names[0] === workflowField(model)?.name) {
        return t("history.did.field", { field: label });
      }
      return t("history.did.action", { action: model.actions.find((action) => action.id === command)?.label ?? command });
  }
}
