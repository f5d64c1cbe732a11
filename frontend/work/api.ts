// The records service's API: what models there are it tells itself, so that no page knows one.
import { send } from "../shared/client";
import { language } from "../shared/i18n";
import { Problem } from "../shared/problem";
import { isSignedIn } from "../shared/session";

/** A text by language. A service of an earlier version answers none of these, nor what is optional below. */
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

/** A number that is shown of a model: how many records there are, or a function of a field. */
export interface Measure {
  field: string | null;
  fn: "count" | "sum" | "avg" | "median";
  better: "up" | "down";
  /** The field by whose date records are counted. */
  date: string | null;
  label: Words;
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
  /** Of a select: how its options are shown. */
  choices?: Choice[] | null;
  ref: string | null;
  /** Of a ref: what a cascading deletion of the record that it refers to does to this one. */
  on_delete: "refuse" | "clear" | "cascade" | null;
  /** Of a ref: these records are parts of the one that it refers to, and are shown and added on its page. */
  is_part: boolean;
  /** Of a ref: it may be empty because this person may not see the record. */
  may_hide: boolean;
  /** The ref to the record that a new one's field is filled from when it is left out. */
  filled_from: string | null;
  masked: boolean;
  /** Agents get a placeholder for it, unless their token says otherwise. */
  is_personal?: boolean;
  /** Of money: the currency of the installation, where one is set. */
  currency?: string | null;
}

export interface Action {
  id: string;
  label: string;
  inputs: string[];
  /** Fields that may be given, too. */
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
  /** The group of the sidebar; the module's own where it names none. */
  group?: string | null;
  title_field?: string;
  subtitle_fields?: string[];
  state_field?: string | null;
  /** The models whose records refer to one of this model. */
  incoming?: { model: string; field: string; label: Words; field_label: Words }[];
  command_details?: CommandDetails[];
  measures?: Measure[];
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

/** What became of a command: it was carried out, or it waits for somebody's approval. */
export type Outcome<Value> = ({ isDone: true } & Envelope<Value>) | { isDone: false; planId: string };

/** What this person may see and do. */
export async function meta(signal?: AbortSignal): Promise<Meta> {
  const found = (await (await send("GET", "/api/meta", signal ? { signal } : {})).json()) as Meta;
  return {
    ...found,
    modules: found.modules.map((each) => ({ ...each, label: inLanguage(each.labels, each.label) })),
    models: found.models.map((each) => ({
      ...each,
      label: inLanguage(each.labels, each.label),
      plural: inLanguage(each.plurals, each.plural),
      fields: each.fields.map((field) => ({ ...field, label: inLanguage(field.labels, field.label) })),
      actions: each.actions.map((action) => ({ ...action, label: inLanguage(action.labels, action.label) })),
    })),
  };
}

/** The words in the language of the page, else in English. */
export function inLanguage(words: Words | undefined, otherwise: string): string {
  return words?.[language] ?? words?.["en"] ?? otherwise;
}

/** What the API answers this person.
 *  @throws Problem where it is refused; after a 401 the page asks for a new sign-in and stays as it is. */
export async function call(method: string, address: string, sent: Parameters<typeof send>[2] = {}): Promise<Response> {
  try {
    return await send(method, address, sent);
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

/** Run a command that writes: done, or proposed (202). */
export async function attempt<Value>(model: string, name: string, input: object): Promise<Outcome<Value>> {
  const answer = await command(model, name, input);
  if (answer.status === 202) {
    return { isDone: false, planId: ((await answer.json()) as { plan_id: string }).plan_id };
  }
  return { isDone: true, ...((await answer.json()) as Envelope<Value>) };
}
