// The states of a workflow in a row: past, current and future.
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import type { Model, Row } from "../api";
import { workflowField } from "../models";
import { optionLabel, optionTone } from "../values/options";

const t = translator("record");

export function StagePath({ model, record }: { model: Model; record: Row }) {
  const field = workflowField(model);
  const currentState = field && String(record[field.name] ?? "");
  if (!field?.options || !currentState || model.actions.length === 0) {
    return null;
  }
  const isLost = optionTone(field, currentState) === "bad";
  // Only a lost record shows the red end step.
  const openOrWon = field.options.filter((step) => optionTone(field, step) !== "bad");
  const steps = isLost ? [...openOrWon.slice(0, -1), currentState] : openOrWon;
  const currentIndex = steps.indexOf(currentState);
  return (
    <ol class="path" aria-label={t("path", { field: field.label })}>
      {steps.map((step, index) => {
        const state = step === currentState ? (isLost ? "on lost" : "on") : index < currentIndex && !isLost ? "done" : "";
        return (
          <li key={step} class={state} aria-current={step === currentState ? "step" : undefined}>
            {state === "done" && <Icon name="check" size="s" />}
            {state === "on lost" && <Icon name="circle-x" size="s" />}
            <span class="cut">{optionLabel(field, step)}</span>
          </li>
        );
      })}
    </ol>
  );
}
