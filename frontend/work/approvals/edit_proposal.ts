// Opens the record of a plan for a person who does it differently. Proposed values become a draft of the record form. The
// plan is then rejected with that reason: only agents propose, and what the person saves is the person's own change.
import type { Meta } from "../api";
import { addressOf, fieldOf, mayRun, modelOf } from "../models";
import { storeDraft } from "../record/draft";
import { valueToText } from "../values/field_text";
import type { Plan } from "./plan";

/** The page on which a person can do it differently, with the key of the draft for the proposed values. The key is null for
 *  deletions and actions, which propose no values. Null unless the plan is about one record that this person may change. */
export function editPageOf(meta: Meta, plan: Plan): { address: string; draftKey: string | null } | null {
  const [name = "", command = ""] = plan.command.split(".");
  const model = modelOf(meta, name);
  const isOne = new Set(plan.diff.map((change) => `${change.model}/${change.id}`)).size === 1;
  if (!model || !isOne || !mayRun(model, command === "create" ? "create" : "update")) {
    return null;
  }
  if (command === "create") {
    return { address: `/models/${name}/new`, draftKey: `${name}/new` };
  }
  const id = plan.target?.id;
  return id ? { address: addressOf(name, id), draftKey: command === "update" ? `${name}/${id}` : null } : null;
}

/** Save the proposed values as the draft of that form, except values that are masked or cannot be written. */
export function saveProposalAsDraft(meta: Meta, plan: Plan, key: string): void {
  const texts = plan.diff.flatMap(({ model, field, after }) => {
    const knownField = fieldOf(modelOf(meta, model), field);
    return knownField && !knownField.masked && !knownField.readonly ? [[field, valueToText(knownField, after)] as const] : [];
  });
  storeDraft(key, Object.fromEntries(texts));
}
