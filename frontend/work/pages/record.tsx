// A record of any model: its fields, what can be done with it, and what happened to it.
import { useEffect, useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { NotPermitted } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { go } from "../../shared/router";
import { type Envelope, type Meta, type Model, type Row, run } from "../api";
import { actionsOf, may, modelOf, titleOf } from "../models";
import { setPageEntries } from "../palette/entries";
import { Actions } from "../record/actions";
import { Conflict, type Conflicting } from "../record/conflict";
import { DeleteDialog } from "../record/delete_dialog";
import { EditForm } from "../record/edit_form";
import { Parts } from "../record/parts";
import { ProposedNotice } from "../record/proposed_notice";
import { save } from "../record/save";
import { Timeline } from "../record/timeline";
import { rememberVisit } from "../referenced_records";
import { translator } from "../../shared/i18n";

const t = translator("record");

/** What the API says of a deletion while another record refers to this one. */
const REFERRED = "another record refers to this one";

export function Record({ meta, name, id }: { meta: Meta; name: string; id: string }) {
  const model = modelOf(meta, name);
  return model && may(model, "get") ? <Known {...{ meta, model, id }} /> : <NotFound />;
}

function Known({ meta, model, id }: { meta: Meta; model: Model; id: string }) {
  const found = useRequest((signal) => run<Row>(model.name, "get", { id }, signal), [model.name, id]);
  return (
    <>
      {/* The heading comes with the record: it has the keyboard, which a first one would take with it. */}
      {found.state === "loading" && <h1 class="hidden-text">{model.label}</h1>}
      {found.state === "failed" && <Heading title={model.label} />}
      <RequestResult of={found}>{(answer) => <Shown key={id} {...{ meta, model, answer }} onAgain={found.reload} />}</RequestResult>
    </>
  );
}

interface Props {
  meta: Meta;
  model: Model;
  answer: Envelope<Row>;
  onAgain: () => void;
}

function Shown({ meta, model, answer, onAgain }: Props) {
  const [record, setRecord] = useState(answer.value);
  const [planId, setPlanId] = useState<string | null>(null);
  const [conflict, setConflict] = useState<Conflicting | null>(null);
  const [deleting, setDeleting] = useState<"asked" | "refused" | null>(null);
  useEffect(() => rememberVisit(model.name, record.id), []);
  const remove = async (cascade: boolean) => {
    const done = await save(model, record, cascade ? { cascade } : {}, "delete");
    if (done.state === "refused" && done.problem.message.includes(REFERRED) && !cascade) {
      setDeleting("refused");
      return;
    }
    setDeleting(null);
    if (done.state === "saved") {
      showToast(t("deleted"));
      go(`/models/${model.name}`);
    } else if (done.state === "proposed") {
      setPlanId(done.planId);
    } else if (done.state === "conflict") {
      setRecord(done.theirs);
      showToast(t("conflict.title"));
    } else {
      showToast(done.problem.message);
    }
  };
  const decide = async (changes: Record<string, unknown>) => {
    const theirs = conflict?.theirs ?? record;
    setConflict(null);
    if (Object.keys(changes).length === 0) {
      setRecord(theirs);
      onAgain();
      return;
    }
    const done = await save(model, theirs, changes);
    if (done.state === "saved") {
      showToast(t("saved"));
      onAgain();
    } else if (done.state === "conflict") {
      setConflict({ base: theirs, theirs: done.theirs, mine: changes });
    } else if (done.state === "refused") {
      showToast(done.problem.message);
    }
  };
  const refresh = async () => {
    const now = await run<Row>(model.name, "get", { id: record.id }).catch(() => null);
    setRecord(now?.value ?? record);
  };
  const title = titleOf(model, record);
  const denied = answer.denied.filter((each) => each.startsWith(`${model.name}.`));
  useEffect(
    () =>
      setPageEntries(
        actionsOf(model, record).map((each) => ({
          words: `${each.label}: ${title}`,
          run: () => document.querySelector<HTMLElement>(`[data-action="${each.id}"]`)?.click(),
        })),
      ),
    [record],
  );
  return (
    <div class="stack record">
      <nav>
        <a href={`/models/${model.name}`}>← {t("back", { model: model.plural })}</a>
      </nav>
      <Heading title={title}>
        {may(model, "delete") && (
          <Button look="risky" onClick={() => setDeleting("asked")}>
            {t("delete")}
          </Button>
        )}
      </Heading>
      {planId && <ProposedNotice planId={planId} />}
      <Actions
        {...{ meta, model, record }}
        onSaved={(row) => setRecord(row.revision ? row : record)}
        onProposed={setPlanId}
        onConflict={setConflict}
      />
      <EditForm
        key={record.revision}
        {...{ meta, model, base: record }}
        onSaved={(row) => (showToast(t("saved")), setRecord(row))}
        onProposed={setPlanId}
        onConflict={setConflict}
      />
      <Parts {...{ meta, model, record }} onChanged={() => void refresh()} />
      {denied.length > 0 && (
        <section class="stack" aria-labelledby="denied">
          <h2 id="denied">{t("locked")}</h2>
          <p class="quiet">{t("locked.text")}</p>
          <dl class="facts">
            {denied.map((each) => (
              <div key={each} class="fact">
                <dt>{each.slice(model.name.length + 1).replaceAll("_", " ")}</dt>
                <dd>
                  <NotPermitted />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {may(model, "history") && <Timeline {...{ meta, model, id: record.id, revision: record.revision }} />}
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
