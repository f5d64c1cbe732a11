// The words for a proposal: a phrase for the list, a sentence for the heading, a verb for its button.
import type { ComponentChildren } from "preact";
import { escapeInvisible } from "../../shared/invisible_characters";
import { number, translator } from "../../shared/i18n";
import { inLanguage, type Meta } from "../api";
import { fieldOf, modelOf, nounOf } from "../models";
import { commandsOf, onlyCommand, type Plan } from "./plan";
import { isCreation, NewRecordTitle, RecordTitle, targetOf } from "./record_title";

const t = translator("approvals");

const GENERAL_COMMANDS = ["create", "update", "delete"] as const;
/** A placeholder for a name in a text. The text is split at this character, which no text contains. */
export const NAME_PLACEHOLDER = "\u0000";

function commandPartsOf(meta: Meta, plan: Plan) {
  const id = onlyCommand(plan) ?? plan.command;
  const [name = "", command = ""] = id.split(".");
  const model = modelOf(meta, name);
  const generalCommand = GENERAL_COMMANDS.find((generalCommand) => generalCommand === command);
  return { id, model, command, general: generalCommand, noun: nounOf(model?.label ?? name), nouns: nounOf(model?.plural ?? name) };
}

/** The verb of its command: "Delete", "Mark as won". */
export function kindOf(meta: Meta, plan: Plan): string {
  const { id, model, command, general: generalCommand } = commandPartsOf(meta, plan);
  if (onlyCommand(plan) === null) {
    return t("kind.several");
  }
  if (generalCommand) {
    return t(`kind.${generalCommand}`);
  }
  const details = model?.command_details?.find((commandDetail) => commandDetail.id === id);
  const action = model?.actions.find((action) => action.id === id);
  const commandText = command.replaceAll("_", " ");
  return inLanguage(details?.verb, action?.label ?? escapeInvisible(commandText.charAt(0).toUpperCase() + commandText.slice(1)));
}

/** The change without the record: "Delete lead", "Delete 12 leads", "Change owner", "Mark as won". */
export function phraseOf(meta: Meta, plan: Plan, groupSize = 1): string {
  const { model, general: generalCommand, noun, nouns } = commandPartsOf(meta, plan);
  const count = groupSize * commandsOf(plan).length;
  if (!generalCommand) {
    return kindOf(meta, plan);
  }
  if (count > 1) {
    return t(`phrase.${generalCommand}.many`, { n: number(count), model: nouns });
  }
  const fields = plan.diff.map((change) => change.field);
  const field = generalCommand === "update" && fields.length === 1 ? fieldOf(model, fields[0] ?? "") : undefined;
  return field ? t("phrase.field", { field: nounOf(field.label) }) : t(`phrase.${generalCommand}`, { model: noun });
}

/** The heading: a sentence with the name of the record. */
export function PlanSentence({ meta, plan, count = 1 }: { meta: Meta; plan: Plan; count?: number }): ComponentChildren {
  const { model, general: generalCommand, noun } = commandPartsOf(meta, plan);
  const target = targetOf(plan);
  if (isCreation(plan) && generalCommand === "create") {
    const ownChanges = plan.diff.filter((change) => change.model === target.model && change.id === target.id);
    return <NewRecordTitle {...{ meta, model, changes: ownChanges }} name={target.model} />;
  }
  if (count > 1 || commandsOf(plan).length > 1 || !target.id) {
    return phraseOf(meta, plan, count);
  }
  const isMasked = fieldOf(model, model?.title_field ?? "")?.masked === true;
  const name = plan.record_name && !isMasked ? <bdi>{escapeInvisible(plan.record_name)}</bdi> : <RecordTitle model={modelOf(meta, target.model)} recordRef={target} isBare />;
  const text = generalCommand ? t(`title.${generalCommand}`, { model: noun, name: NAME_PLACEHOLDER }) : t("title.action", { action: kindOf(meta, plan), name: NAME_PLACEHOLDER });
  const [textBefore = "", textAfter = ""] = text.split(NAME_PLACEHOLDER);
  return (
    <>
      {textBefore}
      {name}
      {textAfter}
    </>
  );
}
