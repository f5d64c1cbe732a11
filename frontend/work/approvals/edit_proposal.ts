// Copies the values of a plan into a draft of the record form, so that a person can change and save them. The plan is
// then rejected with that reason: only agents propose, and what the person saves is the person's own change.
import type { Meta } from "../api";
import { addressOf, fieldOf, may, modelOf } from "../models";
import { storeDraft } from "../record/draft";
import { valueToText } from "../values/field_text";
import type { Plan } from "./plan";

/** The form in which the proposed values can be changed. Null unless the plan creates or updates one record, and this
 *  person may do the same. */
export function formFor(meta: Meta, plan: Plan): { address: string; key: string } | null {
  const [name = "", command = ""] = plan.command.split(".");
  const model = modelOf(meta, name);
  const isOne = new Set(plan.diff.map((each) => `${each.model}/${each.id}`)).size === 1;
  if (!model || !isOne || !may(model, command)) {
    return null;
  }
  if (command === "create") {
    return { address: `/models/${name}/new`, key: `${name}/new` };
  }
  const id = plan.target?.id;
  return command === "update" && id ? { address: addressOf(name, id), key: `${name}/${id}` } : null;
}

/** Save the proposed values as the draft of that form, except values that are masked or cannot be written. */
export function saveProposalAsDraft(meta: Meta, plan: Plan, key: string): void {
  const texts = plan.diff.flatMap(({ model, field, after }) => {
    const knownField = fieldOf(modelOf(meta, model), field);
    return knownField && !knownField.masked && !knownField.readonly ? [[field, valueToText(knownField, after)] as const] : [];
  });
  storeDraft(key, Object.fromEntries(texts));
}
