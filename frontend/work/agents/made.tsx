// A new token, shown this once, with what an MCP client needs to use it.
import { useAsked } from "../../shared/asked";
import { Button, Copy } from "../../shared/components/button";
import { Answer } from "../../shared/components/states";
import { seenBy } from "./commands";
import { Sees } from "./sees";
import { translator } from "../../shared/i18n";

const t = translator("agents");

export function Made({ token, label, onDone }: { token: string; label: string; onDone: () => void }) {
  const seen = useAsked((signal) => seenBy(token, signal), [token]);
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
      <h2 id="made">{t("made")}</h2>
      <p>{t("made.text")}</p>
      <div class="row">
        <code class="secret" data-of={label}>
          {token}
        </code>
        <Copy text={token} of={t("token")} />
      </div>
      <h3>{t("config")}</h3>
      <pre class="code-box" tabIndex={0}>
        {config}
      </pre>
      <div class="row">
        <Copy text={config} of={t("config.of")} />
      </div>
      <Answer of={seen}>{(meta) => <Sees meta={meta} />}</Answer>
      <div class="row">
        <Button onClick={onDone}>{t("done")}</Button>
      </div>
    </section>
  );
}
