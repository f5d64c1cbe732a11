// A new token, shown once, with the MCP client configuration that uses it. `children` replace the button at its end.
import type { ComponentChildren } from "preact";
import { useRequest } from "../../shared/request";
import { Button, CopyButton } from "../../shared/components/button";
import { RequestResult } from "../../shared/components/states";
import { metaOfToken } from "./commands";
import { TokenAccess } from "./token_access";
import { translator } from "../../shared/i18n";

const t = translator("agents");

export function NewToken({ token, label, onDone, children }: { token: string; label: string; onDone: () => void; children?: ComponentChildren }) {
  const metaRequest = useRequest((signal) => metaOfToken(token, signal), [token]);
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
        <CopyButton text={token} name={t("token")} />
      </div>
      <h3>{t("config")}</h3>
      <pre class="code-box" tabIndex={0}>
        {config}
      </pre>
      <div class="row">
        <CopyButton text={config} name={t("config.of")} />
      </div>
      {children}
      <RequestResult request={metaRequest}>{(meta) => <TokenAccess meta={meta} />}</RequestResult>
      {!children && (
        <div class="row">
          <Button onClick={onDone}>{t("done")}</Button>
        </div>
      )}
    </section>
  );
}
