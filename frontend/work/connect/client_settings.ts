// Settings of common MCP clients for this service; if the client allows it, the token is in an environment variable, not in a file.

export interface ClientSettings {
  name: string;
  /** The path of the settings file, or "$" for a command to run. */
  place: string;
  text: string;
  /** Whether the client has its own tab if there is space for only a few tabs. */
  isFirst?: boolean;
}

const TOKEN = "COUNTERSIGN_AGENT_TOKEN";

function file(content: object): string {
  return JSON.stringify(content, null, 2);
}

/** The settings of each client for the endpoint at this address. */
export function clientSettings(url: string): ClientSettings[] {
  const servers = (server: object) => file({ mcpServers: { countersign: server } });
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
  return [
    {
      name: "Claude Code",
      isFirst: true,
      place: "$",
      text: `claude mcp add --transport http countersign ${url} \\\n    --header "Authorization: Bearer $${TOKEN}"`,
    },
    {
      name: "Claude Desktop",
      place: "claude_desktop_config.json",
      text: servers({
        command: "npx",
        args: ["-y", "mcp-remote", url, "--header", "Authorization:${COUNTERSIGN_AUTHORIZATION}"],
        env: { COUNTERSIGN_AUTHORIZATION: "Bearer css_agent_PASTE_THE_TOKEN" },
      }),
    },
    {
      name: "Codex",
      isFirst: true,
      place: "~/.codex/config.toml",
      text: `[mcp_servers.countersign]\nurl = "${url}"\nbearer_token_env_var = "${TOKEN}"`,
    },
    { name: "Gemini CLI", place: "~/.gemini/settings.json", text: servers({ httpUrl: url, headers: bearer(`$${TOKEN}`) }) },
    {
      name: "VS Code",
      isFirst: true,
      place: ".vscode/mcp.json",
      text: file({
        inputs: [{ type: "promptString", id: "countersign-token", description: "Countersign agent token", password: true }],
        servers: { countersign: { type: "http", url, headers: bearer("${input:countersign-token}") } },
      }),
    },
    { name: "Cursor", place: ".cursor/mcp.json", text: servers({ url, headers: bearer(`\${env:${TOKEN}}`) }) },
    {
      name: "Windsurf",
      place: "~/.codeium/windsurf/mcp_config.json",
      text: servers({ serverUrl: url, headers: bearer(`\${env:${TOKEN}}`) }),
    },
    {
      name: "Inspector",
      place: "$",
      text: `npx @modelcontextprotocol/inspector --cli ${url} --transport http \\\n    --header "Authorization: Bearer $${TOKEN}" --method tools/list`,
    },
  ];
}
