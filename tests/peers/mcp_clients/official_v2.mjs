// The official TypeScript SDK, second major version: lists, calls, is refused, and gets a plan. `mode` is legacy or auto.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, token, lead, mode] = process.argv.slice(2);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const options = mode === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "a test", version: "1" }, options);
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
await client.connect(transport);
const seen = { revision: client.getNegotiatedProtocolVersion() };
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
