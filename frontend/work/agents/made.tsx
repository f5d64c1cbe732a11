// A new token, shown this once, with what an MCP client needs to use it.
import { Button, Copy } from "../../shared/components/button";
import { say } from "./say";

export function Made({ token, label, onDone }: { token: string; label: string; onDone: () => void }) {
  const config = JSON.stringify(
    {
      mcpServers: {
        countersign: { type: "http", url: `${location.origin}/mcp`, headers: { Authorization: `Bearer ${token}` } },
      },
    },
    null,
    2,
  );
  return (
    <section class="signed stack" aria-labelledby="made">
      <h2 id="made">{say("made")}</h2>
      <p>{say("made.text")}</p>
      <div class="row">
        <code class="secret" data-of={label}>
          {token}
        </code>
        <Copy text={token} of={say("token")} />
      </div>
      <h3>{say("config")}</h3>
      <pre class="code-box" tabIndex={0}>
        {config}
      </pre>
      <div class="row">
        <Copy text={config} of={say("config.of")} />
        <Button onClick={onDone}>{say("done")}</Button>
      </div>
    </section>
  );
}
