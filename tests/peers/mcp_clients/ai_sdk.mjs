// The MCP client of the AI SDK, which shares no code with the official ones: lists, calls, is refused, gets a plan.
import { createMCPClient } from "@ai-sdk/mcp";

const [url, token, lead] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const client = await createMCPClient({ transport: { type: "http", url, headers } });
const tools = await client.tools();
const call = (name, input) => tools[name].execute(input, { toolCallId: "1", messages: [] });
const seen = { tools: Object.keys(tools) };
seen.got = (await call("lead__get", { id: lead })).structuredContent;
const refused = await call("lead__get", { id: "x" });
seen.refused = [refused.isError, refused.content[0].text];
const proposed = await call("lead__delete", { id: lead });
seen.proposed = [proposed.isError, proposed.structuredContent];
try {
  await client.callTool({ name: "lead__fly", arguments: {} });
} catch (error) {
  seen.unknown = [error.code ?? null, error.message];
}
await client.close();
process.stdout.write(JSON.stringify(seen));
