// The workflow actions of a record in its present state, each with its inputs.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Faults } from "../../shared/components/field";
import { Icon } from "../../shared/components/icon";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import type { Action, Field, Meta, Model, Row } from "../api";
import { actionsOf, fieldOf, workflowField, titleOf } from "../models";
import { optionLabel, optionTone } from "../values/options";
import { parseText } from "../values/field_text";
import type { Conflicting } from "./conflict";
import { FormFields } from "./form_fields";
import { save } from "./save";
import { translator } from "../../shared/i18n";

const t = translator("record");

/** Labels of actions that could be confused with the dialog's own Cancel button. */
const CANCELLING = ["cancel", "abbrechen"];

interface Props {
  meta: Meta;
  model: Model;
  record: Row;
  onSaved: (row: Row) => void;
  onProposed: (planId: string) => void;
  onConflict: (conflict: Conflicting) => void;
}

export function Actions({ meta, model, record, onSaved, onProposed, onConflict }: Props) {
  const [open, setOpen] = useState<Action | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const perform = async (action: Action, inputs: Record<string, unknown>) => {
    const done = await save(model, record, inputs, action.id.slice(model.name.length + 1));
    if (done.state === "refused") {
      setProblem(done.problem);
      setOpen(action);
      return;
    }
    setOpen(null);
    setProblem(null);
    setTexts({});
    if (done.state === "saved") {
      showToast(t("action.done", { action: action.label }));
      onSaved(done.row);
    } else if (done.state === "proposed") {
      onProposed(done.planId);
    } else {
      onConflict({ base: record, theirs: done.theirs, mine: {} });
    }
  };
  const submit = (action: Action) => {
    const given = Object.entries(texts).map(([name, text]) => {
      const field = fieldOf(model, name);
      return [name, field ? parseText(field, text) : { value: text }] as const;
    });
    const faults = given.flatMap(([name, each]) => ("fault" in each ? [{ parameter: name, detail: each.fault }] : []));
    if (faults.length) {
      setProblem(new Problem(0, { detail: faults[0]?.detail, errors: faults }));
      return;
    }
    void perform(action, Object.fromEntries(given.map(([name, each]) => [name, "value" in each ? each.value : null])));
  };
  const close = () => {
    setOpen(null);
    setProblem(null);
  };
  const all = actionsOf(model, record);
  // Only actions that this person may use in another state, so that the list reveals no other action.
  const missing = model.actions.filter((each) => model.commands.includes(each.id) && !all.includes(each));
  const state = workflowField(model);
  if (all.length + missing.length === 0) {
    return null;
  }
  const forward = forwardAction(model, record, all);
  return (
    <div class="record-actions">
      <div class="action-row" role="group" aria-label={t("actions")}>
        <Unavailable {...{ model, record }} actions={missing} />
        {[...all.filter((each) => each !== forward), ...(forward ? [forward] : [])].map((action) => (
          <Button
            key={action.id}
            data-action={action.id}
            {...(action === forward ? { look: "strong" } : {})}
            {...(action.needs_approval ? { title: t("action.approval") } : {})}
            onClick={() => setOpen(action)}
          >
            <EndIcon {...{ state, action }} />
            {action.label}
          </Button>
        ))}
      </div>
      <Dialog
        title={open ? t("action.title", { action: open.label, name: titleOf(model, record) }) : ""}
        isOpen={open !== null}
        onClose={close}
        isCancelling={CANCELLING.includes(open?.label.toLowerCase() ?? "")}
        actions={
          open && (
            <Button look="strong" onClick={() => submit(open)}>
              {open.label}
            </Button>
          )
        }
      >
        <Faults problem={problem} />
        {open && state && open.to && (
          <p>{t("action.moves", { field: state.label, now: nowOf(state, record), to: optionLabel(state, open.to) })}</p>
        )}
        {open && open.reversible !== true && <p>{t("action.asks")}</p>}
        {open && open.inputs.length + open.optional_inputs.length > 0 && (
          <FormFields
            meta={meta}
            fields={[
              ...open.inputs.flatMap((name) => inputOf(model, name, true)),
              ...open.optional_inputs.flatMap((name) => inputOf(model, name, false)),
            ]}
            base={record}
            texts={texts}
            problem={problem}
            onText={(name, text) => setTexts({ ...texts, [name]: text })}
            onKeep={(name) => setTexts(({ [name]: _, ...rest }) => rest)}
          />
        )}
      </Dialog>
    </div>
  );
}

/** Why some actions cannot be taken as the record stands, behind an icon. */
function Unavailable({ model, record, actions }: { model: Model; record: Row; actions: readonly Action[] }) {
  const state = workflowField(model);
  if (actions.length === 0 || !state) {
    return null;
  }
  return (
    <details class="missing" onKeyDown={(event) => event.key === "Escape" && event.currentTarget.removeAttribute("open")}>
      <summary aria-label={t("missing")} title={t("missing")}>
        <Icon name="info" size="s" />
      </summary>
      <div>
        <strong>{t("missing")}</strong>
        <ul>
          {actions.map((each) => (
            <li key={each.id}>
              <strong>{each.label}</strong>:{" "}
              {t("missing.from", {
                field: state.label,
                from: each.from.map((one) => optionLabel(state, one)).join(", "),
                now: nowOf(state, record),
              })}
            </li>
          ))}
        </ul>
      </div>
    </details>
  );
}

/** What marks an action that ends well or badly. */
function EndIcon({ state, action }: { state: Field | undefined; action: Action }) {
  const tone = state && action.to ? optionTone(state, action.to) : "";
  return tone === "good" || tone === "bad" ? <Icon name={tone === "good" ? "circle-check" : "circle-x"} size="s" /> : null;
}

function nowOf(state: Field, record: Row): string {
  const now = record[state.name];
  return now ? optionLabel(state, String(now)) : "–";
}

/** The action that moves the record to the next state. */
function forwardAction(model: Model, record: Row, all: readonly Action[]): Action | undefined {
  const field = workflowField(model);
  const states = field?.options ?? [];
  const now = states.indexOf(String(record[field?.name ?? ""]));
  const ahead = all.filter((each) => field && each.to && states.indexOf(each.to) > now && optionTone(field, each.to) !== "bad");
  return ahead.sort((one, other) => states.indexOf(one.to ?? "") - states.indexOf(other.to ?? ""))[0];
}

/** The field as an input of an action, writable even if an update may not change it. */
function inputOf(model: Model, name: string, required: boolean) {
  const field = fieldOf(model, name);
  return field ? [{ ...field, readonly: false, required }] : [];
}
