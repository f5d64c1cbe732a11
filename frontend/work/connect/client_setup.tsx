// Instructions for setting up MCP clients, one tab per client.
import { useState } from "preact/hooks";
import { CopyButton } from "../../shared/components/button";
import { Tabs } from "../../shared/components/tabs";
import { translator } from "../../shared/i18n";
import { type ClientSettings, clientSettings } from "./client_settings";

const t = translator("connect");

/** @param isNarrow Whether most clients are under the tab "More". */
export function ClientSetup({ isNarrow = false }: { isNarrow?: boolean }) {
  const allClients = clientSettings(`${location.origin}/mcp`);
  if (!isNarrow) {
    return <ClientTabs label={t("clients")} clients={allClients} />;
  }
  return <ClientTabs label={t("clients")} clients={allClients.filter((client) => client.isFirst)} more={allClients.filter((client) => !client.isFirst)} />;
}

function ClientTabs({ label, clients, more }: { label: string; clients: readonly ClientSettings[]; more?: readonly ClientSettings[] }) {
  const [chosenName, setChosenName] = useState("");
  const tabs = clients.map((client) => ({ name: client.name.replaceAll(" ", "-"), label: client.name, content: () => <Settings client={client} /> }));
  const otherClients = more && { name: "more", label: t("clients.more"), content: () => <ClientTabs label={t("clients.others")} clients={more} /> };
  return <Tabs {...{ label, chosen: chosenName }} onChoose={setChosenName} tabs={otherClients ? [...tabs, otherClients] : tabs} />;
}

function Settings({ client }: { client: ClientSettings }) {
  return (
    <div class="stack tight">
      <div class="row">
        <p class="grow">{client.place === "$" ? t("run") : t("write", { place: client.place })}</p>
        <CopyButton key={client.name} text={client.text} name={t("settings", { client: client.name })} />
      </div>
      <pre class="code-box" tabIndex={0} data-client={client.name}>
        {client.text}
      </pre>
    </div>
  );
}
