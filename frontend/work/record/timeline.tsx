// The timeline of a record: its events with the old and new values that this person may see, and comments, newest first.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { dateTime, number, plural, translator } from "../../shared/i18n";
import { type Field, type Meta, type Model, run } from "../api";
import { fieldOf, may, nounOf } from "../models";
import { AgentAvatar, Avatar } from "../values/avatar";
import { Value } from "../values/value";
import { Changes } from "./changes";
import { CommentItem, NewComment } from "./comment_items";
import { loadComments } from "./comments";
import { eventTime } from "./event_time";

const t = translator("record");

export interface Entry {
  at: string;
  command: string;
  by: string | null;
  agent: string | null;
  changes: Record<string, [unknown, unknown]>;
}

const FILTERS = ["all", "people", "agents", "comments"] as const;
type Filter = (typeof FILTERS)[number];

const SHOWN = 20;
/** The maximum length of a text in a line; longer texts are compared in a table. */
const SHORT = 60;
/** The maximum number of changes shown at once. An event with more has all of them in a table that opens. */
const MOST_SHOWN = 3;

interface Props {
  meta: Meta;
  model: Model;
  id: string;
  revision: number;
  /** Called with the entries of the history, newest first, when they are loaded. */
  onHistory: (entries: readonly Entry[]) => void;
}

export function Timeline({ meta, model, id, revision, onHistory }: Props) {
  const [isWhole, setWhole] = useState(false);
  const [filter, setFilter] = useState<Filter>("all");
  const found = useRequest(
    async (signal) => {
      const history = may(model, "history") ? run<Entry[]>(model.name, "history", { id }, signal) : null;
      const [said, entries] = await Promise.all([loadComments(meta, model, id, signal), history]);
      onHistory(entries?.value ?? []);
      return { ...said, entries: entries?.value ?? [] };
    },
    [model.name, id, revision],
    { keepsPrevious: true },
  );
  return (
    <>
      <NewComment {...{ meta, model, id }} onWritten={found.reload} />
      <RequestResult of={found}>
        {({ entries, comments, me }) => {
          const offered = FILTERS.filter((each) => each === "all" || count(each, entries, comments.length) > 0);
          const events = shownEvents(filter, entries).map((entry, place) => ({
            at: entry.at,
            item: <Event key={entry.at + place} {...{ meta, model, entry }} />,
          }));
          const remarks = (filter === "all" || filter === "comments" ? comments : []).map((comment) => ({
            at: comment.written_at,
            item: <CommentItem key={comment.id} {...{ meta, comment }} isOwn={me !== undefined && comment.author === me} onChanged={found.reload} />,
          }));
          const all = [...events, ...remarks].sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
          return (
            <>
              {(offered.includes("agents") || offered.includes("comments")) && (
                <div class="segments timeline-filter" role="group" aria-label={t("history")}>
                  {offered.map((each) => (
                    <button key={each} type="button" aria-pressed={filter === each} onClick={() => setFilter(each)}>
                      {t(`history.show.${each}`)}
                    </button>
                  ))}
                </div>
              )}
              {all.length === 0 && <p class="quiet timeline-none">{t("history.none")}</p>}
              <ol class="timeline">{(isWhole ? all : all.slice(0, SHOWN)).map((each) => each.item)}</ol>
              {!isWhole && all.length > SHOWN && (
                <Button tight onClick={() => setWhole(true)}>
                  {t("history.more", { n: number(all.length) })}
                </Button>
              )}
            </>
          );
        }}
      </RequestResult>
    </>
  );
}

function count(filter: Filter, entries: readonly Entry[], comments: number): number {
  return filter === "comments" ? comments : shownEvents(filter, entries).length;
}

function shownEvents(filter: Filter, entries: readonly Entry[]): readonly Entry[] {
  if (filter === "all") {
    return entries;
  }
  return filter === "comments" ? [] : entries.filter((each) => (each.agent !== null) === (filter === "agents"));
}

function Event({ meta, model, entry }: { meta: Meta; model: Model; entry: Entry }) {
  const changes = Object.entries(entry.changes).map(([name, [before, after]]) => ({ field: fieldOf(model, name), name, before, after }));
  const isMaking = entry.command.endsWith(".create");
  const areShort = changes.every(({ field, before, after }) => field && isShort(before) && isShort(after));
  const isShown = !isMaking && changes.length <= MOST_SHOWN && areShort;
  return (
    <li>
      {entry.agent === null ? <Avatar name={entry.by ?? "–"} /> : <AgentAvatar />}
      <div>
        <p>
          <strong>{entry.agent ?? entry.by ?? t("history.someone")}</strong>
          {entry.agent !== null && entry.by !== null && ` ${t("history.for", { name: entry.by })}`} {whatHappened(model, entry)}{" "}
          <time class="quiet" dateTime={entry.at} title={dateTime(entry.at)}>
            {eventTime(entry.at)}
          </time>
        </p>
        {isShown ? (
          changes.map(
            ({ name, field, before, after }) =>
              field && <EventChange key={name} {...{ meta, field, before, after }} isNamed={changes.length > 1} />,
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

function isShort(value: unknown): boolean {
  return String(value ?? "").length <= SHORT;
}

function EventChange({ meta, field, before, after, isNamed }: { meta: Meta; field: Field; before: unknown; after: unknown; isNamed: boolean }) {
  return (
    <p class="event-change">
      {isNamed && <span class="quiet">{field.label}</span>}
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
function whatHappened(model: Model, { command, changes }: Entry): string {
  const names = Object.keys(changes);
  const label = nounOf(fieldOf(model, names[0] ?? "")?.label ?? "");
  const noun = nounOf(model.label);
  switch (command) {
    case `${model.name}.create`:
      return t("history.did.create", { model: noun });
    case `${model.name}.update`:
      return names.length === 1 && label ? t("history.did.field", { field: label }) : t("history.did.fields", { n: number(names.length) });
    default:
      return t("history.did.action", { action: model.actions.find((each) => each.id === command)?.label ?? command });
  }
}
