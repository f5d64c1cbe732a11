// What a record is called that a plan is about: as it stands now, else as any plan here tells it.
import { Masked } from "../../shared/components/chip";
import type { Model, Row } from "../api";
import { fieldOf, titleOf } from "../models";
import { referred } from "../refs";
import { plans } from "./live";
import type { Difference } from "./plan";
import { say } from "./say";

export function Named({ model, of }: { model: Model | undefined; of: Difference }) {
  if (!model) {
    return <>{say("step", { model: of.model, id: of.id.slice(0, 8) })}</>;
  }
  const record: Row = referred(model, of.id).value ?? { id: of.id, revision: 0, [model.shown_as]: toldOf(model, of.id) };
  const field = fieldOf(model, model.shown_as);
  const said = record[model.shown_as];
  if (field?.masked && said) {
    return (
      <>
        {model.label} <Masked token={String(said)} label={field.label} />
      </>
    );
  }
  const title = titleOf(model, record);
  // A record that nobody named is called by its model already.
  return <>{said ? say("step", { model: model.label, id: title }) : title}</>;
}

/** The name of a record that may be gone: the plan that deletes it has it. */
function toldOf(model: Model, id: string): unknown {
  const told = (plans.value ?? []).flatMap((plan) => plan.diff);
  return told.find((each) => each.model === model.name && each.id === id && each.field === model.shown_as)?.before;
}
