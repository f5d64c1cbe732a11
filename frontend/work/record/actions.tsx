// The workflow actions of a record in its present state, each with its inputs: the move forward, others, and a menu.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { FormErrors } from "../../shared/components/field";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import type { Action, Field, Meta, Model, Row } from "../api";
import { actionsOf, fieldOf, workflowField, titleOf } from "../models";
import { isNarrow } from "../screen_size";
import { optionLabel, optionTone } from "../values/options";
import { parseText } from "../values/field_text";
import type { EditConflict } from "./conflict";
import { FormFields } from "./form_fields";
import { save } from "./save";
import { translator } from "../../shared/i18n";

const t = translator("record");

/** Labels of actions that could be confused with the dialog's own Cancel button. */
const CANCEL_LABELS = ["cancel", "abbrechen"];

/** The number of buttons beside the move forward: one on a phone. The menu has the other actions. */
const MAX_OTHERS = 2;

/** The id of the action that the palette asks for. */
export const requestedAction = signal<string | null>(null);

interface Props {
  meta: Meta;
  model: Model;
  record: Row;
  onSaved: (row: Row) => void;
  onProposed: (planId: string) => void;
  onConflict: (conflict: EditConflict) => void;
}

export function Actions({ meta, model, record, onSaved, onProposed, onConflict }: Props) {
  const [openAction, setOpenAction] = useState<Action | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const perform = async (action: Action, inputs: Record<string, unknown>) => {
    const result = await save(model, record, inputs, action.id.slice(model.name.length + 1));
    if (result.state === "refused") {
      setProblem(result.problem);
      setOpenAction(action);
      return;
    }
    setOpenAction(null);
    setProblem(null);
    setTexts({});
    if (result.state === "saved") {
      showToast(t("action.done", { action: action.label }));
      onSaved(result.row);
    } else if (result.state === "proposed") {
      onProposed(result.planId);
    } else {
      onConflict({ base: record, serverRecord: result.serverRecord, ownChanges: {} });
    }
  };
  const submit = (action: Action) => {
    const parsedInputs = Object.entries(texts).map(([name, text]) => {
      const field = fieldOf(model, name);
      return [name, field ? parseText(field, text) : { value: text }] as const;
    });
    const errors = parsedInputs.flatMap(([name, input]) => ("error" in input ? [{ parameter: name, detail: input.error }] : []));
    if (errors.length) {
      setProblem(new Problem(0, { detail: errors[0]?.detail, errors }));
      return;
    }
    void perform(action, Object.fromEntries(parsedInputs.map(([name, input]) => [name, "value" in input ? input.value : null])));
  };
  const close = () => {
    setOpenAction(null);
    setProblem(null);
  };
  const availableActions = actionsOf(model, record);
  useEffect(() => {
    const requestedNow = availableActions.find((availableAction) => availableAction.id === requestedAction.value);
    if (requestedNow) {
      requestedAction.value = null;
      setOpenAction(requestedNow);
    }
  }, [requestedAction.value]);
  const state = workflowField(model);
  if (availableActions.length === 0) {
    return null;
  }
  const forward = forwardAction(model, record, availableActions);
  const otherActions = availableActions.filter((availableAction) => availableAction !== forward);
  const maxButtons = isNarrow.value ? 1 : MAX_OTHERS;
  const inMenu = otherActions.slice(maxButtons);
  return (
    <>
      <div class="record-actions" role="group" aria-label={t("actions")}>
        {inMenu.length > 0 && (
          <Menu label={t("actions.more")} opener={<Icon name="ellipsis" />} items={inMenu.map((action) => ({ label: action.label, does: () => setOpenAction(action) }))} />
        )}
        {[...otherActions.slice(0, maxButtons), ...(forward ? [forward] : [])].map((action) => (
          <Button
            key={action.id}
            data-action={action.id}
            {...(action === forward ? { variant: "strong" } : {})}
            {...(action.needs_approval ? { title: t("action.approval") } : {})}
            onClick={() => setOpenAction(action)}
          >
            <EndIcon {...{ state, action }} />
            {action.label}
          </Button>
        ))}
      </div>
      <Dialog
        title={openAction ? t("action.title", { action: openAction.label, name: titleOf(model, record) }) : ""}
        isOpen={openAction !== null}
        onClose={close}
        isCancelling={CANCEL_LABELS.includes(openAction?.label.toLowerCase() ?? "")}
        actions={
          openAction && (
            <Button variant="strong" onClick={() => submit(openAction)}>
              {openAction.label}
            </Button>
          )
        }
      >
        <FormErrors problem={problem} />
        {openAction && state && openAction.to && (
          <p>{t("action.moves", { field: state.label, now: stateLabelOf(state, record), to: optionLabel(state, openAction.to) })}</p>
        )}
        {openAction && openAction.reversible !== true && <p>{t("action.asks")}</p>}
        {openAction && openAction.inputs.length + openAction.optional_inputs.length > 0 && (
          <FormFields
            meta={meta}
            fields={[
              ...openAction.inputs.flatMap((name) => inputOf(model, name, true)),
              ...openAction.optional_inputs.flatMap((name) => inputOf(model, name, false)),
            ]}
            base={record}
            texts={texts}
            problem={problem}
            onText={(name, text) => setTexts({ ...texts, [name]: text })}
            onKeep={(name) => setTexts(({ [name]: _, ...otherTexts }) => otherTexts)}
          />
        )}
      </Dialog>
    </>
  );
}

/** An icon that shows why some actions are unavailable in the present state of the record. */
export function UnavailableActions({ model, record }: { model: Model; record: Row }) {
  const state = workflowField(model);
  // Only actions that this person may use in another state, so that the list reveals no other action.
  const availableActions = actionsOf(model, record);
  const actions = model.actions.filter((action) => model.commands.includes(action.id) && !availableActions.includes(action));
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
          {actions.map((action) => (
            <li key={action.id}>
              <strong>{action.label}</strong>:{" "}
              {t("missing.from", {
                field: state.label,
                from: action.from.map((stateName) => optionLabel(state, stateName)).join(", "),
                now: stateLabelOf(state, record),
              })}
            </li>
          ))}
        </ul>
      </div>
    </details>
  );
}

/** The mark of an action that leads to a good or bad end state. */
function EndIcon({ state, action }: { state: Field | undefined; action: Action }) {
  const tone = state && action.to ? optionTone(state, action.to) : "";
  return tone === "good" || tone === "bad" ? <Icon name={tone === "good" ? "circle-check" : "circle-x"} size="s" /> : null;
}

function stateLabelOf(state: Field, record: Row): string {
  const currentState = record[state.name];
  return currentState ? optionLabel(state, String(currentState)) : "–";
}

/** The action that moves the record to the next state. */
function forwardAction(model: Model, record: Row, actions: readonly Action[]): Action | undefined {
  const field = workflowField(model);
  const states = field?.options ?? [];
  const currentIndex = states.indexOf(String(record[field?.name ?? ""]));
  const forwardActions = actions.filter((action) => field && action.to && states.indexOf(action.to) > currentIndex && optionTone(field, action.to) !== "bad");
  return forwardActions.sort((action, otherAction) => states.indexOf(action.to ?? "") - states.indexOf(otherAction.to ?? ""))[0];
}

/** The field as an input of an action, writable even if an update may not change it. */
function inputOf(model: Model, name: string, isRequired: boolean) {
  const field = fieldOf(model, name);
  return field ? [{ ...field, readonly: false, required: isRequired }] : [];
}
