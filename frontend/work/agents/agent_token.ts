// The token of an agent: its permissions and its last use.
import { type Meta, type Model, type Row, run } from "../api";
import { mayRun, modelOf } from "../models";
import { ownId } from "../ownership";
import { type Command, isReadCommand } from "./commands";

export interface AgentToken extends Row {
  label: string;
  user: string;
  /** Patterns of commands: "lead.*,party.get". */
  scopes: string | null;
  /** The personal fields that the agent sees in clear. */
  unmask: string | null;
  issued_at: string;
  expires_at: string;
  ended_at: string | null;
  /** Undefined if the service is an earlier version. */
  last_used_at?: string | null;
  calls_24h?: number | null;
  refused_24h?: number | null;
  proposals_open?: number | null;
}

export function isLive(token: AgentToken): boolean {
  return token.ended_at === null && Date.parse(token.expires_at) > Date.now();
}

/** Whether one of the patterns allows the command: "*", "lead.*", "*.get", "lead.get". */
export function allows(scopes: readonly string[], id: string): boolean {
  const [model, command] = id.split(".");
  return scopes.some((scope) => {
    const [ofModel, ofCommand = "*"] = scope.split(".");
    return (ofModel === "*" || ofModel === model) && (ofCommand === "*" || ofCommand === command);
  });
}

export function listOf(text: string | null | undefined): string[] {
  return (text ?? "").split(",").map((part) => part.trim()).filter(Boolean);
}

/** The models and commands that no scope includes. The service refuses a scope that names one of them. */
const MODELS_OF_PAGES = ["view", "favourite", "dashboard"];
const NEVER_FOR_AGENTS = [
  ...["plan.reject", "user.invite", "session.revoke", "audit_entry.verify"],
  ...["user.home", "user.find", "user.recent", "user.deactivate", "agent_token.calls", "comment.people"],
];

/** Whether a scope may include the command. */
export function isGrantable(id: string): boolean {
  return !MODELS_OF_PAGES.includes(id.split(".")[0] ?? "") && !NEVER_FOR_AGENTS.includes(id);
}

/** The person's commands that the token allows. */
export function commandsOf(meta: Meta, token: AgentToken): ReadonlySet<string> {
  const scopes = listOf(token.scopes);
  return new Set(meta.models.flatMap((model) => model.commands.filter((command) => isGrantable(command) && allows(scopes, command))));
}

/** The id of the signed-in person. People who may not list others may read their own record. */
export async function ownUser(meta: Meta, tokens: readonly AgentToken[], signal: AbortSignal): Promise<string | undefined> {
  const user = modelOf(meta, "user");
  if (user && mayRun(user, "list")) {
    return ownId(meta, signal);
  }
  const ids = [...new Set(tokens.map((token) => token.user))];
  const users = await Promise.all(ids.map((id) => run<Row>("user", "get", { id }, signal).catch(() => null)));
  return users.find((user) => user?.value["username"] === meta.caller.name)?.value.id;
}

/** Whether an agent may use a command: "yes", it "proposes", it reads records whose name is "masked", or that are "partly"
 *  masked, or "no". */
export type Permission = "yes" | "proposes" | "masked" | "partly" | "no";

export interface ModelPermissions {
  model: Model;
  read: Permission;
  write: Permission;
  remove: Permission;
}

const READS = ["get", "list", "search"];

/** The permissions for each model. Models without a permitted command come last. */
export function permissionsOf(meta: Meta, commands: readonly Command[], chosen: ReadonlySet<string>, unmasked: readonly string[] = []): ModelPermissions[] {
  const waits = new Set(commands.filter((command) => command.needs_approval).map((command) => command.id));
  const rated = (ids: readonly string[]): Permission => {
    const allowed = ids.filter((id) => chosen.has(id));
    return allowed.length === 0 ? "no" : allowed.every((id) => waits.has(id)) ? "proposes" : "yes";
  };
  const all = meta.models.map((model): ModelPermissions => {
    const id = (command: string) => `${model.name}.${command}`;
    const writes = model.commands.filter((command) => !isReadCommand(command) && command !== id("delete"));
    const masked = model.fields.filter((field) => field.masked || (field.is_personal && !unmasked.includes(id(field.name))));
    const read = rated(READS.map(id));
    const clear = masked.some((field) => field.name === model.shown_as) ? "masked" : masked.length > 0 ? "partly" : "yes";
    return { model, read: read === "yes" ? clear : read, write: rated(writes), remove: rated([id("delete")]) };
  });
  const isNothing = (permissions: ModelPermissions) => permissions.read === "no" && permissions.write === "no" && permissions.remove === "no";
  return [...all.filter((row) => !isNothing(row)), ...all.filter((row) => isNothing(row) && row.model.module !== "base")];
}
