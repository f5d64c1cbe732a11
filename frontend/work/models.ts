// Functions on the description of a model: permissions, columns, its workflow field.
import { escapeInvisible } from "../shared/invisible_characters";
import { language } from "../shared/i18n";
import type { Action, Field, Meta, Model, Row } from "./api";

/** The id, which every record has, as a field for filters. */
export const ID: Field = {
  name: "id",
  kind: "text",
  label: "ID",
  help: "",
  required: true,
  readonly: true,
  options: null,
  ref: null,
  on_delete: null,
  is_part: false,
  may_hide: false,
  filled_from: null,
  masked: false,
};

const COLUMNS = 7;
const ENGINE = "base";

export function modelOf(meta: Meta, name: string): Model | undefined {
  return meta.models.find((each) => each.name === name);
}

export function fieldOf(model: Model | undefined, name: string): Field | undefined {
  return name === "id" ? ID : model?.fields.find((each) => each.name === name);
}

export function mayRun(model: Model, command: string): boolean {
  return model.commands.includes(`${model.name}.${command}`);
}

export function canList(model: Model): boolean {
  return mayRun(model, "list") || mayRun(model, "search");
}

/** The business models, without the engine's own. */
export function businessModels(meta: Meta): Model[] {
  return meta.models.filter((each) => each.module !== ENGINE && canList(each));
}

/** The models whose records are parts of this model's records, each with its ref to this model. */
export function partsOf(meta: Meta, model: Model): [Model, Field][] {
  const listedModels = meta.models.filter(canList);
  return listedModels.flatMap((each) => each.fields.filter((field) => field.is_part && field.ref === model.name).map((field): [Model, Field] => [each, field]));
}

/** The title field, then the other fields that fit in a line. */
export function defaultColumns(model: Model, maxColumns = COLUMNS): Field[] {
  const shortFields = model.fields.filter((each) => !["longtext", "structure"].includes(each.kind));
  const titleFields = shortFields.filter((each) => each.name === model.shown_as);
  return [...titleFields, ...shortFields.filter((each) => each.name !== model.shown_as)].slice(0, maxColumns);
}

const LIST_COLUMNS = 8;

/** The columns of a list: title, state, amounts and dates first; then one text, and references. */
export function listColumns(model: Model): Field[] {
  const shortFields = model.fields.filter((each) => !["longtext", "structure"].includes(each.kind));
  const isFirst = (each: Field) => each.name === model.shown_as;
  const texts = shortFields.filter((each) => !isFirst(each) && each.kind === "text");
  const fieldsOfKind = (...kinds: string[]) => shortFields.filter((each) => !isFirst(each) && kinds.includes(each.kind) && each !== workflowField(model));
  const state = workflowField(model);
  const orderedFields = [...shortFields.filter(isFirst), ...(state ? [state] : []), ...fieldsOfKind("money"), ...fieldsOfKind("date"), ...texts.slice(0, 1), ...fieldsOfKind("ref", "select"), ...texts.slice(1), ...fieldsOfKind("number", "bool", "moment")];
  return orderedFields.slice(0, LIST_COLUMNS);
}

/** The columns of a row of two lines: title and an amount or date, then one or two facts and the state. */
export function twoLineColumns(model: Model, columns: readonly Field[]): Field[] {
  const [firstColumn, ...otherColumns] = columns;
  const state = otherColumns.find((each) => each === workflowField(model)) ?? otherColumns.find((each) => each.kind === "select");
  const amount = otherColumns.find((each) => each.kind === "money") ?? otherColumns.find((each) => ["date", "number"].includes(each.kind));
  const remainingColumns = otherColumns.filter((each) => each !== state && each !== amount);
  const facts = ["text", "ref", "select", "date"].flatMap((kind) => remainingColumns.filter((each) => each.kind === kind)).slice(0, 2);
  return [firstColumn, amount, ...facts, state].flatMap((each) => each ?? []);
}

/** The select field that the workflow's actions change: its options include all of their states. */
export function workflowField(model: Model): Field | undefined {
  if (model.state_field !== undefined) {
    return model.fields.find((each) => each.name === model.state_field);
  }
  const states = model.actions.flatMap((each) => [...each.from, ...(each.to ? [each.to] : [])]);
  const knows = (field: Field) => states.every((state) => field.options?.includes(state));
  return states.length ? model.fields.find(knows) : undefined;
}

/** The actions that are possible in the record's present state; all actions if the state is hidden. */
export function actionsOf(model: Model, record: Row): Action[] {
  const field = workflowField(model);
  const isOpen = (action: Action) => !field || action.from.length === 0 || action.from.includes(String(record[field.name]));
  return model.actions.filter((each) => model.commands.includes(each.id) && isOpen(each));
}

/** The title of a record, if this person may read it. */
export function titleOf(model: Model, record: Row): string {
  const title = record[model.shown_as];
  return title === null || title === undefined || title === "" ? `${model.label} ${record.id.slice(0, 8)}` : escapeInvisible(String(title));
}

export function addressOf(model: string, id: string): string {
  return `/models/${model}/records/${encodeURIComponent(id)}`;
}

/** The label of a model inside a phrase: lower case in English, except abbreviations. */
export function nounOf(label: string): string {
  return language === "en" && /^\p{Lu}\p{Ll}/u.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label;
}
