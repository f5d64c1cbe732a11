// The commands that this person can give to an agent.
import { send } from "../../shared/client";
import { call, type Meta } from "../api";

export interface Command {
  id: string;
  description: string;
  needs_approval: boolean;
}

const READING = ["get", "list", "search", "count_by", "history", "export", "watch", "related", "series", "verify", "find", "recent", "home", "calls", "people"];

export function isReadCommand(id: string): boolean {
  return READING.includes(id.split(".")[1] ?? "");
}

export async function commands(signal: AbortSignal): Promise<Command[]> {
  const answer = await call("GET", "/api/commands", { signal });
  return ((await answer.json()) as { commands: Command[] }).commands;
}

export interface TokenRequest {
  label: string;
  scopes: string[];
  expires_in: number;
  /** The personal fields that the agent sees in clear. */
  unmask?: string[];
}

/** Issue a token. The service returns it only once. */
export async function issueToken(request: TokenRequest): Promise<string> {
  const answer = await call("POST", "/api/auth/agent-token", { body: request });
  return ((await answer.json()) as { token: string }).token;
}

/** Request the API's description for the new token. Only here a page sends a token, the one that it shows. */
export async function metaOfToken(token: string, signal: AbortSignal): Promise<Meta> {
  const answer = await send("GET", "/api/meta", { headers: { Authorization: `Bearer ${token}` }, signal });
  return (await answer.json()) as Meta;
}
