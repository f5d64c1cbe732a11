// The API of the records service. It describes its models itself, so no page depends on a certain model.
import { send } from "../shared/client";
import { language } from "../shared/i18n";
import { Problem } from "../shared/problem";
import { isSignedIn } from "../shared/session";

/** The operators of the API's filters. */
export type Operator = "eq" | "ne" | "contains" | "in" | "gt" | "gte" | "lt" | "lte" | "is_null";

export interface Condition {
  field: string;
  op: Operator;
  value: unknown;
}

/** A text by language. Earlier versions of the service do not send these, nor the optional members below. */
export type Words = Record<string, string>;

export interface Choice {
  value: string;
  label: Words;
  tone: string;
}

export interface CommandDetails {
  id: string;
  labels: Words;
  verb: Words;
  reversible: boolean;
  risk: Risk;
}

/** A figure of a model: the number of its records, or a function of a field. */
export interface Measure {
  field: string | null;
  /** "share" is the number of records that the filter selects, divided by the number that `among` selects. */
  fn: "count" | "sum" | "avg" | "median" | "share";
  better: "up" | "down";
  /** The date field that assigns records to days. */
  date: string | null;
  label: Words;
  /** Selects the records that are measured. Like the following members, it is undefined if the service is an earlier
   *  version. */
  filter?: Condition[];
  among?: Condition[];
  /** Whether the measure covers the days from today on instead of the days of the period. */
  ahead?: boolean;
}

/** A view of a list that the model declares. */
export interface DeclaredView {
  name: string;
  label: Words;
  filter: { field: string; op: string; value: unknown }[];
  order: { field: string; dir: "asc" | "desc" }[];
}

export type Risk = "high" | "medium" | "low";

export interface Field {
  name: string;
  kind: string;
  label: string;
  help: string;
  required: boolean;
  readonly: boolean;
  options: string[] | null;
  labels?: Words;
  /** For a select: the labels and colours of its options. */
  choices?: Choice[] | null;
  ref: string | null;
  /** For a ref: the effect on this record of a cascading deletion of the referenced record. */
  on_delete: "refuse" | "clear" | "cascade" | null;
  /** For a ref: whether these records are parts of the referenced record, shown and added on its page. */
  is_part: boolean;
  /** For a ref: whether it may be empty because this person may not see the record. */
  may_hide: boolean;
  /** The ref to the record from which the API fills this field of a new record if it is omitted. */
  filled_from: string | null;
  masked: boolean;
  /** False if records cannot be ordered by the field, because the connected database has no index for it. */
  sortable?: false;
  /** Whether agents get a placeholder token instead of the value, unless their access token shows the field in clear.
   *  */
  is_personal?: boolean;
  /** The beginning of its placeholder tokens: "EMAIL" for `EMAIL_12`. Null if it is not personal. */
  token_label?: string | null;
  /** For money: the currency of the installation, if it is set. */
  currency?: string | null;
}

export interface Action {
  id: string;
  label: string;
  inputs: string[];
  /** Optional input fields. */
  optional_inputs: string[];
  from: string[];
  to: string | null;
  needs_approval: boolean;
  labels?: Words;
  reversible?: boolean;
}

export interface Model {
  name: string;
  label: string;
  plural: string;
  module: string;
  help: string;
  shown_as: string;
  labels?: Words;
  plurals?: Words;
  icon?: string | null;
  /** The group in the sidebar. If undefined, the group of the module. */
  group?: string | null;
  title_field?: string;
  subtitle_fields?: string[];
  state_field?: string | null;
  /** The records are in a connected database, and are only read. */
  is_connected?: boolean;
  /** Whether people and agents who see a record can comment on it. */
  has_comments?: boolean;
  /** The models whose records refer to records of this model. */
  incoming?: { model: string; field: string; label: Words; field_label: Words }[];
  command_details?: CommandDetails[];
  measures?: Measure[];
  /** The views that the model declares. The list shows the first one at first. */
  views?: DeclaredView[];
  fields: Field[];
  commands: string[];
  actions: Action[];
}

export interface Meta {
  modules: { name: string; version: string; label: string; labels?: Words; icon?: string | null }[];
  models: Model[];
  caller: { kind: string; name: string; scopes: string[] };
}

export type Row = { id: string; revision: number } & Record<string, unknown>;

export interface Envelope<Value> {
  denied: string[];
  value: Value;
}

/** The outcome of a command: it was carried out, or it waits for approval. */
export type Outcome<Value> = ({ isDone: true } & Envelope<Value>) | { isDone: false; planId: string };

/** The API's description of what this person may see and do. */
export async function meta(signal?: AbortSignal): Promise<Meta> {
  const answeredMeta = (await (await send("GET", "/api/meta", signal ? { signal } : {})).json()) as Meta;
  return {
    ...answeredMeta,
    modules: answeredMeta.modules.map((module) => ({ ...module, label: inLanguage(module.labels, module.label) })),
    models: answeredMeta.models.map((model) => ({
      ...model,
      label: inLanguage(model.labels, model.label),
      plural: inLanguage(model.plurals, model.plural),
      fields: model.fields.map((field) => ({ ...field, label: inLanguage(field.labels, field.label) })),
      actions: model.actions.map((action) => ({ ...action, label: inLanguage(action.labels, action.label) })),
    })),
  };
}

/** The text in the language of the page, or else in English. */
export function inLanguage(texts: Words | undefined, otherwise: string): string {
  return texts?.[language] ?? texts?.["en"] ?? otherwise;
}

/** Call the API as this person.
 *  @throws Problem if the call is refused. After a 401 the page asks for a new sign-in and otherwise stays as it is. */
export async function call(method: string, address: string, parts: Parameters<typeof send>[2] = {}): Promise<Response> {
  try {
    return await send(method, address, parts);
  } catch (error) {
    if (error instanceof Problem && error.status === 401) {
      isSignedIn.value = false;
    }
    throw error;
  }
}

async function command(model: string, name: string, input: object, signal?: AbortSignal): Promise<Response> {
  return call("POST", `/api/${model}/${name}`, signal ? { body: input, signal } : { body: input });
}

/** Run a command that reads. */
export async function run<Value>(model: string, name: string, input: object, signal?: AbortSignal): Promise<Envelope<Value>> {
  return (await (await command(model, name, input, signal)).json()) as Envelope<Value>;
}

/** Run a command that writes. It is carried out, or becomes a proposal (202). */
export async function runOrPropose<Value>(model: string, name: string, input: object): Promise<Outcome<Value>> {
  const answer = await command(model, name, input);
  if (answer.status === 202) {
    return { isDone: false, planId: ((await answer.json()) as { plan_id: string }).plan_id };
  }
  return { isDone: true, ...((await answer.json()) as Envelope<Value>) };
}
