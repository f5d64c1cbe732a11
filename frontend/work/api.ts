// The records service's API: what models there are it tells itself, so that no page knows one.
import { send } from "../shared/client";

export interface Field {
  name: string;
  kind: string;
  label: string;
  help: string;
  required: boolean;
  readonly: boolean;
  options: string[] | null;
  ref: string | null;
  masked: boolean;
}

export interface Action {
  id: string;
  label: string;
  inputs: string[];
  from: string[];
  to: string;
  needs_approval: boolean;
}

export interface Model {
  name: string;
  label: string;
  plural: string;
  module: string;
  help: string;
  shown_as: string;
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

/** What this person may see and do. */
export async function meta(signal?: AbortSignal): Promise<Meta> {
  return (await (await send("GET", "/api/meta", signal ? { signal } : {})).json()) as Meta;
}

/** Run a command of a model. */
export async function run<Value>(model: string, command: string, input: object, signal?: AbortSignal): Promise<Envelope<Value>> {
  const answer = await send("POST", `/api/${model}/${command}`, signal ? { body: input, signal } : { body: input });
  return (await answer.json()) as Envelope<Value>;
}
