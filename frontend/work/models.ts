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
  return meta.models.find((model) => model.name === name);
}

export function fieldOf(model: Model | undefined, name: string): Field | undefined {
  return name === "id" ? ID : model?.fields.find((field) => field.name === name);
}

export function mayRun(model: Model, command: string): boolean {
  return model.commands.includes(`${model.name}.${command}`);
}

export function canList(model: Model): boolean {
  return mayRun(model, "list") || mayRun(model, "search");
}

/** The business models, without the engine's own. */
export function businessModels(meta: Meta): Model[] {
  return meta.models.filter((model) => model.module !== ENGINE && canList(model));
}

/** The models whose records are parts of this model's records, each with its ref to this model. */
export function partsOf(meta: Meta, model: Model): [Model, Field][] {
  const listedModels = meta.models.filter(canList);
  return listedModels.flatMap((listedModel) => listedModel.fields.filter((field) => field.is_part && field.ref === model.name).map((field): [Model, Field] => [listedModel, field]));
}

/** The title field, then the other fields that fit in a line. */
export function defaultColumns(model: Model, maxColumns = COLUMNS): Field[] {
  const shortFields = model.fields.filter((field) => !["longtext", "structure"].includes(field.kind));
  const titleFields = shortFields.filter((shortField) => shortField.name === model.shown_as);
  return [...titleFields, ...shortFields.filter((field) => field.name !== model.shown_as)].slice(0, maxColumns);
}

const LIST_COLUMNS = 8;

/** The columns of a list: title, state, amounts and dates first; then one text, and references. */
export function listColumns(model: Model): Field[] {
  const shortFields = model.fields.filter((field) => !["longtext", "structure"].includes(field.kind));
  const isFirst = (field: Field) => field.name === model.shown_as;
  const texts = shortFields.filter((shortField) => !isFirst(shortField) && shortField.kind === "text");
  const fieldsOfKind = (...kinds: string[]) => shortFields.filter((shortField) => !isFirst(shortField) && kinds.includes(shortField.kind) && shortField !== workflowField(model));
  const state = workflowField(model);
  const orderedFields = [...shortFields.filter(isFirst), ...(state ? [state] : []), ...fieldsOfKind("money"), ...fieldsOfKind("date"), ...texts.slice(0, 1), ...fieldsOfKind("ref", "select"), ...texts.slice(1), ...fieldsOfKind("number", "bool", "moment")];
  return orderedFields.slice(0, LIST_COLUMNS);
}

/** The columns of a row of two lines: title and an amount or date, then one or two facts and the state. */
export function twoLineColumns(model: Model, columns: readonly Field[]): Field[] {
  const [firstColumn, ...otherColumns] = columns;
  const state = otherColumns.find((otherColumn) => otherColumn === workflowField(model)) ?? otherColumns.find((otherColumn) => otherColumn.kind === "select");
  const amount = otherColumns.find((otherColumn) => otherColumn.kind === "money") ?? otherColumns.find((otherColumn) => ["date", "number"].includes(otherColumn.kind));
  const remainingColumns = otherColumns.filter((otherColumn) => otherColumn !== state && otherColumn !== amount);
  const facts = ["text", "ref", "select", "date"].flatMap((kind) => remainingColumns.filter((remainingColumn) => remainingColumn.kind === kind)).slice(0, 2);
  return [firstColumn, amount, ...facts, state].flatMap((fact) => fact ?? []);
}

/** The select field that the workflow's actions change: its options include all of their states. */
export function workflowField(model: Model): Field | undefined {
  if (model.state_field !== undefined) {
    return model.fields.find((field) => field.name === model.state_field);
  }
  const states = model.actions.flatMap((action) => [...action.from, ...(action.to ? [action.to] : [])]);
  const knows = (field: Field) => states.every((state) => field.options?.includes(state));
  return states.length ? model.fields.find(knows) : undefined;
}

/** The actions that are possible in the record's present state; all actions if the state is hidden. */
export function actionsOf(model: Model, record: Row): Action[] {
  const field = workflowField(model);
  const isOpen = (action: Action) => !field || action.from.length === 0 || action.from.includes(String(record[field.name]));
  return model.actions.filter((action) => model.commands.includes(action.id) && isOpen(action));
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
