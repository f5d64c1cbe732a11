// The states of a workflow in a row: past, current and future.
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import type { Model, Row } from "../api";
import { workflowField } from "../models";
import { optionLabel, optionTone } from "../values/options";

const t = translator("record");

export function StagePath({ model, record }: { model: Model; record: Row }) {
  const field = workflowField(model);
  const now = field && String(record[field.name] ?? "");
  if (!field?.options || !now || model.actions.length === 0) {
    return null;
  }
  const isLost = optionTone(field, now) === "bad";
  // Only a lost record shows the red end step.
  const going = field.options.filter((each) => optionTone(field, each) !== "bad");
  const steps = isLost ? [...going.slice(0, -1), now] : going;
  const at = steps.indexOf(now);
  return (
    <ol class="path" aria-label={t("path", { field: field.label })}>
      {steps.map((each, place) => {
        const state = each === now ? (isLost ? "on lost" : "on") : place < at && !isLost ? "done" : "";
        return (
          <li key={each} class={state} aria-current={each === now ? "step" : undefined}>
            {state === "done" && <Icon name="check" size="s" />}
            {state === "on lost" && <Icon name="circle-x" size="s" />}
            <span class="cut">{optionLabel(field, each)}</span>
          </li>
        );
      })}
    </ol>
  );
}
