// The official TypeScript SDK, second major version. `mode` is legacy or auto.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { walk } from "./walking.mjs";

const [url, token, lead, mode] = process.argv.slice(2);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const options = mode === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "a test", version: "1" }, options);
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
await walk(client, client.getNegotiatedProtocolVersion(), lead);
