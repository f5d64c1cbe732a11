// The page of a record of any model: fields, actions and timeline.
import { useEffect, useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Heading, PageTitle } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { type Tab, Tabs } from "../../shared/components/tabs";
import { showToast } from "../../shared/toast";
import { go } from "../../shared/router";
import { type Envelope, type Meta, type Model, type Row, run } from "../api";
import { actionsOf, mayRun, modelOf, titleOf } from "../models";
import { setPageEntries } from "../palette/entries";
import { Actions, requestedAction, UnavailableActions } from "../record/actions";
import { hasComments } from "../record/comments";
import { Conflict, type EditConflict } from "../record/conflict";
import { DeleteDialog } from "../record/delete_dialog";
import { EditForm } from "../record/edit_form";
import { eventTime } from "../record/event_time";
import { ApiView } from "../record/api_view";
import { RecordBar } from "../record/record_bar";
import { Related } from "../record/related";
import { StagePath } from "../record/stage_path";
import { modelIcon } from "../shell/model_icons";
import { ProposedNotice } from "../record/proposed_notice";
import { save } from "../record/save";
import { type HistoryEntry, type LoadedTimeline, Timeline } from "../record/timeline";
import { rememberVisit } from "../referenced_records";
import { date, translator } from "../../shared/i18n";
import "../record/record.css";

const t = translator("record");

/** The API's error if another record refers to the one to delete. */
const REFERRED = "another record refers to this one";

export function Record({ meta, name, id }: { meta: Meta; name: string; id: string }) {
  const model = modelOf(meta, name);
  return model && mayRun(model, "get") ? <LoadedRecord {...{ meta, model, id }} /> : <NotFound />;
}

function LoadedRecord({ meta, model, id }: { meta: Meta; model: Model; id: string }) {
  const recordRequest = useRequest((signal) => run<Row>(model.name, "get", { id }, signal), [model.name, id]);
  return (
    <>
      {/* The heading comes with the record: it has the keyboard, which a first one would take with it. */}
      {recordRequest.state === "loading" && <h1 class="hidden-text">{model.label}</h1>}
      {recordRequest.state === "failed" && <Heading title={model.label} />}
      <RequestResult request={recordRequest}>{(answer) => <RecordContent key={id} {...{ meta, model, answer }} onAgain={recordRequest.reload} />}</RequestResult>
    </>
  );
}

/** When the record was created and last changed, as its history says. */
function lifeOf(model: Model, history: readonly HistoryEntry[]): string[] {
  const [firstEntry, lastEntry] = [history.at(-1), history[0]];
  const isCreated = firstEntry?.command === `${model.name}.create`;
  const created = isCreated && firstEntry ? [firstEntry.by ? t("life.created.by", { on: date(firstEntry.at), name: firstEntry.by }) : t("life.created", { on: date(firstEntry.at) })] : [];
  return lastEntry && (lastEntry !== firstEntry || !isCreated) ? [...created, t("life.updated", { ago: eventTime(lastEntry.at) })] : created;
}

interface Props {
  meta: Meta;
  model: Model;
  answer: Envelope<Row>;
  onAgain: () => void;
}

function RecordContent({ meta, model, answer, onAgain }: Props) {
  const [record, setRecord] = useState(answer.value);
  const [planId, setPlanId] = useState<string | null>(null);
  const [conflict, setConflict] = useState<EditConflict | null>(null);
  const [tab, setTab] = useState("timeline");
  const [loadedTimeline, setLoadedTimeline] = useState<LoadedTimeline>({ entries: [], comments: [] });
  const [deleting, setDeleting] = useState<"asked" | "refused" | null>(null);
  useEffect(() => rememberVisit(model.name, record.id), []);
  const remove = async (cascade: boolean) => {
    const outcome = await save(model, record, cascade ? { cascade } : {}, "delete");
    if (outcome.state === "refused" && outcome.problem.message.includes(REFERRED) && !cascade) {
      setDeleting("refused");
      return;
    }
    setDeleting(null);
    if (outcome.state === "saved") {
      showToast(t("deleted"));
      go(`/models/${model.name}`);
    } else if (outcome.state === "proposed") {
      setPlanId(outcome.planId);
    } else if (outcome.state === "conflict") {
      setRecord(outcome.serverRecord);
      showToast(t("conflict.title"));
    } else {
      showToast(outcome.problem.message);
    }
  };
  const decide = async (changes: Record<string, unknown>) => {
    const serverRecord = conflict?.serverRecord ?? record;
    setConflict(null);
    if (Object.keys(changes).length === 0) {
      setRecord(serverRecord);
      onAgain();
      return;
    }
    const outcome = await save(model, serverRecord, changes);
    if (outcome.state === "saved") {
      showToast(t("saved"));
      onAgain();
    } else if (outcome.state === "conflict") {
      setConflict({ base: serverRecord, serverRecord: outcome.serverRecord, ownChanges: changes });
    } else if (outcome.state === "refused") {
      showToast(outcome.problem.message);
    }
  };
  const refresh = async () => {
    const now = await run<Row>(model.name, "get", { id: record.id }).catch(() => null);
    setRecord(now?.value ?? record);
  };
  const title = titleOf(model, record);
  const deniedFields = answer.denied.filter((deniedName) => deniedName.startsWith(`${model.name}.`));
  useEffect(
    () =>
      setPageEntries(
        actionsOf(model, record).map((action) => ({
          words: `${action.label}: ${title}`,
          run: () => (requestedAction.value = action.id),
        })),
      ),
    [record],
  );
  // Both tabs show one timeline, so that it is not loaded again.
  const timeline = (onlyComments: boolean) => () => (
    <Timeline key="timeline" {...{ meta, model, onlyComments, planId, id: record.id, revision: record.revision }} onLoad={setLoadedTimeline} />
  );
  const sideTabs: Tab[] = [
    ...(mayRun(model, "history") ? [{ name: "timeline", label: t("history"), content: timeline(false) }] : []),
    ...(hasComments(meta, model) ? [{ name: "comments", label: t("comments"), count: loadedTimeline.comments.length || undefined, content: timeline(true) }] : []),
    { name: "api", label: t("api"), content: () => <ApiView {...{ model, record }} /> },
  ];
  const names = deniedFields.map((deniedField) => deniedField.slice(model.name.length + 1));
  return (
    <div class="page record-page">
      <RecordBar {...{ model, title, record }} onDelete={mayRun(model, "delete") ? () => setDeleting("asked") : null} />
      <div class="record-split">
        <div class="record-main">
          <header class="record-head">
            <div class="grow">
              <div class="quiet record-meta">
                <Icon name={modelIcon(model)} size="s" />
                <p>{[model.label, ...lifeOf(model, loadedTimeline.entries)].join(" · ")}</p>
                <UnavailableActions {...{ model, record }} />
              </div>
              <PageTitle title={title} />
            </div>
            <Actions
              {...{ meta, model, record }}
              onSaved={(row) => setRecord(row.revision ? row : record)}
              onProposed={setPlanId}
              onConflict={setConflict}
            />
          </header>
          <StagePath {...{ model, record }} />
          {planId && <ProposedNotice planId={planId} />}
          <EditForm
            key={record.revision}
            {...{ meta, model, base: record }}
            denied={names}
            onSaved={(row) => (showToast(t("saved")), setRecord(row))}
            onProposed={setPlanId}
            onConflict={setConflict}
          />
          <Related {...{ meta, model, record }} onChanged={() => void refresh()} />
        </div>
        <aside class="record-aside" aria-label={t("beside")}>
          <Tabs label={t("beside")} tabs={sideTabs} chosen={tab} onChoose={setTab} />
        </aside>
      </div>
      {conflict && (
        <Conflict {...{ meta, model, conflict }} onDecide={(changes) => void decide(changes)} onClose={() => setConflict(null)} />
      )}
      {deleting && (
        <DeleteDialog
          {...{ meta, model, record }}
          isRefused={deleting === "refused"}
          onDelete={(cascade) => void remove(cascade)}
          onClose={() => setDeleting(null)}
        />
      )}
    </div>
  );
}
