// The records service's API: what models there are it tells itself, so that no page knows one.
import { send } from "../shared/client";
import { Problem } from "../shared/problem";
import { isSignedIn } from "../shared/session";

export interface Field {
  name: string;
  kind: string;
  label: string;
  help: string;
  required: boolean;
  readonly: boolean;
  options: string[] | null;
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
}

export interface Model {
  name: string;
  label: string;
  plural: string;
  module: string;
  help: string;
  shown_as: string;
  /** What the module declares for its pages; a service of an earlier version declares none of it. */
  icon?: string | null;
  /** The group of the sidebar; the module's own where it names none. */
  group?: string | null;
  fields: Field[];
  commands: string[];
  actions: Action[];
}

export interface Meta {
  modules: { name: string; version: string; label: string }[];
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
  return (await (await send("GET", "/api/meta", signal ? { signal } : {})).json()) as Meta;
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
