// The record as JSON from the API, and the request for it.
import { CopyButton } from "../../shared/components/button";
import type { Model, Row } from "../api";
import { translator } from "../../shared/i18n";

const t = translator("record");

export function ApiView({ model, record }: { model: Model; record: Row }) {
  const call = [
    `curl -X POST '${location.origin}/api/${model.name}/get' \\`,
    `  -H "Authorization: Bearer $COUNTERSIGN_TOKEN" -H 'Content-Type: application/json' \\`,
    `  -d '{"id":"${record.id}"}'`,
  ].join("\n");
  return (
    <div class="api-view">
      <pre class="code-box" tabIndex={0}>
        {call}
      </pre>
      <CopyButton text={call} name={t("api.call")} />
      <pre class="code-box" tabIndex={0}>
        {JSON.stringify(record, null, 2)}
      </pre>
    </div>
  );
}
