// The official TypeScript SDK, first major version: lists, calls, is refused, and gets a plan.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token, lead] = process.argv.slice(2);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const client = new Client({ name: "a test", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
await client.connect(transport);
const seen = { revision: transport.protocolVersion };
seen.tools = (await client.listTools()).tools.map((each) => each.name);
seen.got = (await client.callTool({ name: "lead__get", arguments: { id: lead } })).structuredContent;
const refused = await client.callTool({ name: "lead__get", arguments: { id: "x" } });
seen.refused = [refused.isError, refused.content[0].text];
const proposed = await client.callTool({ name: "lead__delete", arguments: { id: lead } });
seen.proposed = [proposed.isError, proposed.structuredContent];
try {
  await client.callTool({ name: "lead__fly", arguments: {} });
} catch (error) {
  seen.unknown = [error.code, error.message];
}
await client.close();
process.stdout.write(JSON.stringify(seen));
