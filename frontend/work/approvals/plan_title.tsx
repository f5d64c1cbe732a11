// The words for a proposal: a phrase for the list, a sentence for the heading, a verb for its button.
import type { ComponentChildren } from "preact";
import { escapeInvisible } from "../../shared/invisible_characters";
import { number, translator } from "../../shared/i18n";
import { inLanguage, type Meta } from "../api";
import { fieldOf, modelOf, nounOf } from "../models";
import { commandsOf, onlyCommand, type Plan } from "./plan";
import { isMaking, Made, RecordTitle, targetOf } from "./record_title";

const t = translator("approvals");

const GENERAL = ["create", "update", "delete"] as const;
const NAME = "\u0000";

function partsOf(meta: Meta, plan: Plan) {
  const id = onlyCommand(plan) ?? plan.command;
  const [name = "", command = ""] = id.split(".");
  const model = modelOf(meta, name);
  const general = GENERAL.find((each) => each === command);
  return { id, model, command, general, noun: nounOf(model?.label ?? name), nouns: nounOf(model?.plural ?? name) };
}

/** The verb of its command: "Delete", "Mark as won". */
export function kindOf(meta: Meta, plan: Plan): string {
  const { id, model, command, general } = partsOf(meta, plan);
  if (onlyCommand(plan) === null) {
    return t("kind.several");
  }
  if (general) {
    return t(`kind.${general}`);
  }
  const details = model?.command_details?.find((each) => each.id === id);
  const action = model?.actions.find((each) => each.id === id);
  const words = command.replaceAll("_", " ");
  return inLanguage(details?.verb, action?.label ?? escapeInvisible(words.charAt(0).toUpperCase() + words.slice(1)));
}

/** The change without the record: "Delete lead", "Delete 12 leads", "Change owner", "Mark as won". */
export function phraseOf(meta: Meta, plan: Plan, several = 1): string {
  const { model, general, noun, nouns } = partsOf(meta, plan);
  const count = several * commandsOf(plan).length;
  if (!general) {
    return kindOf(meta, plan);
  }
  if (count > 1) {
    return t(`phrase.${general}.many`, { n: number(count), model: nouns });
  }
  const fields = plan.diff.map((each) => each.field);
  const field = general === "update" && fields.length === 1 ? fieldOf(model, fields[0] ?? "") : undefined;
  return field ? t("phrase.field", { field: nounOf(field.label) }) : t(`phrase.${general}`, { model: noun });
}

/** The heading: a sentence with the name of the record. */
export function PlanSentence({ meta, plan, count = 1 }: { meta: Meta; plan: Plan; count?: number }): ComponentChildren {
  const { model, general, noun } = partsOf(meta, plan);
  const target = targetOf(plan);
  if (isMaking(plan) && general === "create") {
    const own = plan.diff.filter((each) => each.model === target.model && each.id === target.id);
    return <Made {...{ meta, model, own }} name={target.model} />;
  }
  if (count > 1 || commandsOf(plan).length > 1 || !target.id) {
    return phraseOf(meta, plan, count);
  }
  const isMasked = fieldOf(model, model?.title_field ?? "")?.masked === true;
  const name = plan.record_name && !isMasked ? <bdi>{escapeInvisible(plan.record_name)}</bdi> : <RecordTitle model={modelOf(meta, target.model)} of={target} isBare />;
  const text = general ? t(`title.${general}`, { model: noun, name: NAME }) : t("title.action", { action: kindOf(meta, plan), name: NAME });
  const [before = "", after = ""] = text.split(NAME);
  return (
    <>
      {before}
      {name}
      {after}
    </>
  );
}
