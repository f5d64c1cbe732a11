// Instructions for setting up MCP clients, one tab per client.
import { useState } from "preact/hooks";
import { CopyButton } from "../../shared/components/button";
import { Tabs } from "../../shared/components/tabs";
import { translator } from "../../shared/i18n";
import { type ClientSettings, clientSettings } from "./client_settings";

const t = translator("connect");

export function ClientSetup() {
  const [chosen, setChosen] = useState("");
  return (
    <Tabs
      label={t("clients")}
      chosen={chosen}
      onChoose={setChosen}
      tabs={clientSettings(`${location.origin}/mcp`).map((each) => ({ name: each.name.replaceAll(" ", "-"), label: each.name, content: () => <Settings client={each} /> }))}
    />
  );
}

function Settings({ client }: { client: ClientSettings }) {
  return (
    <div class="stack tight">
      <p>{client.place === "$" ? t("run") : t("write", { place: client.place })}</p>
      <pre class="code-box" tabIndex={0} data-client={client.name}>
        {client.text}
      </pre>
      <div class="row">
        <CopyButton key={client.name} text={client.text} of={t("settings", { client: client.name })} />
      </div>
    </div>
  );
}
