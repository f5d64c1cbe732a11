// The official TypeScript SDK, first major version.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { walk } from "./walking.mjs";

const [url, token, lead] = process.argv.slice(2);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const client = new Client({ name: "a test", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
await client.connect(transport);
await walk(client, transport.protocolVersion, lead);
