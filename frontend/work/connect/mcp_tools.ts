// Requests the tool list from the MCP endpoint with a token, as an agent would; the token is not stored.
import { send } from "../../shared/client";
import { Problem } from "../../shared/problem";
import type { Command } from "../agents/commands";

export interface Tool {
  name: string;
  title?: string;
  description?: string;
  annotations?: { readOnlyHint?: boolean };
  /** Whether the command only becomes a proposal. */
  proposes?: boolean;
}

interface Reply {
  result?: { tools: Tool[] };
  error?: { message: string };
}

/** The tools that the endpoint lists for this token.
 *  @throws Problem if the token is invalid or has expired. */
export async function listTools(token: string): Promise<Tool[]> {
  const headers = { Authorization: `Bearer ${token}`, Accept: "application/json, text/event-stream" };
  const body = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  const reply = (await (await send("POST", "/mcp", { headers, body })).json()) as Reply;
  if (!reply.result) {
    throw new Problem(0, { detail: reply.error?.message });
  }
  const answer = await send("GET", "/api/commands", { headers: { Authorization: headers.Authorization } });
  const { commands } = (await answer.json()) as { commands: Command[] };
  const proposing = new Set(commands.filter((command) => command.needs_approval).map((command) => command.id.replace(".", "__")));
  return reply.result.tools.map((tool) => ({ ...tool, proposes: proposing.has(tool.name) }));
}
