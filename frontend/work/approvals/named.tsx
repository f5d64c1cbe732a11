// What a record is called that a plan is about: as it stands now, else as any plan here tells it.
import { Masked } from "../../shared/components/chip";
import { number } from "../../shared/words";
import type { Meta, Model, Row } from "../api";
import { fieldOf, modelOf, titleOf } from "../models";
import { referred } from "../refs";
import { plans } from "./live";
import type { Difference, Plan } from "./plan";
import { say } from "./say";

export function Named({ model, of }: { model: Model | undefined; of: Pick<Difference, "model" | "id"> }) {
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
  return <bdi>{said ? say("step", { model: model.label, id: title }) : title}</bdi>;
}

/** What a plan is about, in a line: the record that it changes first, or what it makes; and how many more there are. */
export function About({ meta, plan }: { meta: Meta; plan: Plan }) {
  const { model = "", id = "" } = plan.diff[0] ?? plan.target ?? {};
  const known = modelOf(meta, model);
  if (!model) {
    return null;
  }
  const others = new Set(plan.diff.map((each) => `${each.model}/${each.id}`)).size - 1;
  const own = plan.diff.filter((each) => each.model === model && each.id === id);
  const isNew = own.length > 0 && own.every((each) => each.before === null) && plan.target?.id !== id;
  return (
    <>
      {isNew || !id ? say("step.new", { model: known?.label ?? model }) : <Named model={known} of={{ model, id }} />}
      {others > 0 && ` ${say("others", { n: number(others) })}`}
    </>
  );
}

/** The name of a record that may be gone: the plan that deletes it has it. */
function toldOf(model: Model, id: string): unknown {
  const told = (plans.value ?? []).flatMap((plan) => plan.diff);
  return told.find((each) => each.model === model.name && each.id === id && each.field === model.shown_as)?.before;
}
