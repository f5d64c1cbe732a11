// The data map of the connected tables, and the decisions of an administrator on their fields.
import { translator } from "../../shared/i18n";
import { type Meta, run } from "../api";
import { mayRun, modelOf } from "../models";

const t = translator("data");

export type Choice = "personal" | "clear" | "hidden";

/** What agents see of a field. `label` is the beginning of the placeholders. */
export interface Sight {
  see: "values" | "tokens" | "nothing";
  label: string | null;
}

/** A column of a connected table. */
export interface MappedField {
  /** Model and name, as a decision names it. */
  field: string;
  name: string;
  kind: string | null;
  agents_see: Sight;
  after_restart: Sight;
  state: "undecided" | "guessed" | "decided";
  why: string | null;
  decided_by: string | null;
  decided_on: string | null;
  choices: readonly Choice[];
  revision: string;
}

export interface MappedModel {
  model: string;
  table: string;
  file: string;
  /** Whether the model is hidden from everyone, because its table has changed or cannot be read. */
  is_suspended: boolean;
  fields: readonly MappedField[];
}

export interface DataMap {
  models: readonly MappedModel[];
  undecided: number;
  decided: number;
  is_restart_needed: boolean;
}

export interface Decision {
  choice: Choice;
  label: string;
  reason: string;
  isConfirmed: boolean;
}

interface DecisionResult {
  field: MappedField;
  undecided: number;
  decided: number;
}

/** Whether this person may decide on the fields of connected tables. */
export function decidesOnFields(meta: Meta): boolean {
  const setting = modelOf(meta, "setting");
  return setting !== undefined && mayRun(setting, "data_map") && mayRun(setting, "decide");
}

export async function loadDataMap(signal: AbortSignal): Promise<DataMap> {
  return (await run<DataMap>("setting", "data_map", {}, signal)).value;
}

/** Whether agents would see more than now: values in place of placeholders, or either in place of nothing. */
export function isWidened(field: MappedField, choice: Choice): boolean {
  const { see } = field.after_restart;
  return choice === "personal" ? see === "nothing" : choice === "clear" && see !== "values";
}

/** Decide on the field, and return the map after the decision.
 *  @throws Problem if it is refused; nothing is written then. */
export async function decide(map: DataMap, field: MappedField, decision: Decision): Promise<DataMap> {
  const { choice, label, reason, isConfirmed } = decision;
  const result = (
    await run<DecisionResult>("setting", "decide", {
      field: field.field,
      decision: choice,
      reason,
      revision: field.revision,
      ...(choice === "personal" && label ? { label } : {}),
      ...(isConfirmed ? { confirmed: true } : {}),
    })
  ).value;
  const models = map.models.map((model) => ({ ...model, fields: model.fields.map((each) => (each.field === field.field ? result.field : each)) }));
  const isRestartNeeded = models.some((model) => model.fields.some(isPending));
  return { models, undecided: result.undecided, decided: result.decided, is_restart_needed: isRestartNeeded };
}

/** Whether agents see something else after the next start of the server. */
export function isPending(field: MappedField): boolean {
  return field.agents_see.see !== field.after_restart.see || field.agents_see.label !== field.after_restart.label;
}

/** A sight in words. */
export function sightText(sight: Sight): string {
  return sight.see === "tokens" ? t("token", { label: sight.label ?? "" }) : t(sight.see === "values" ? "clear" : "nothing");
}
