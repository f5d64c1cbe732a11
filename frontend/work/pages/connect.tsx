// Connecting agents by MCP: settings for clients, the tools for a token, and the activity of its agent.
import { useRequest } from "../../shared/request";
import { CopyButton, LinkButton } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { setQuery, query } from "../../shared/router";
import { type Meta, type Row, run } from "../api";
import { AgentActivity } from "../connect/agent_activity";
import { ClientSetup } from "../connect/client_setup";
import { ToolList } from "../connect/tool_list";
import { canList, modelOf } from "../models";
import { isNarrow } from "../screen_size";
import { translator } from "../../shared/i18n";
import "../agents/agents.css";

const t = translator("connect");

export function Connect({ meta }: { meta: Meta }) {
  const model = modelOf(meta, "agent_token");
  return model && canList(model) ? <ConnectContent meta={meta} /> : <NotFound />;
}

function ConnectContent({ meta }: { meta: Meta }) {
  const url = `${location.origin}/mcp`;
  return (
    <div class="stack connect">
      <Heading title={t("title")}>
        <LinkButton href="/agents">{t("make")}</LinkButton>
      </Heading>
      <p class="quiet">{t("lead")}</p>
      <div class="row">
        <code class="secret">{url}</code>
        <CopyButton text={url} name={t("address")} />
      </div>
      <section class="stack" aria-labelledby="clients">
        <h2 id="clients">{t("clients")}</h2>
        <p class="quiet">{t("clients.text")}</p>
        <ClientSetup isNarrow={isNarrow.value} />
      </section>
      <ToolList />
      <ConnectedAgents meta={meta} />
    </div>
  );
}

function ConnectedAgents({ meta }: { meta: Meta }) {
  const order = [{ field: "issued_at", dir: "desc" }];
  const tokenRequest = useRequest((signal) => run<Row[]>("agent_token", "list", { order, limit: 200 }, signal), []);
  return (
    <section class="stack" aria-labelledby="activity">
      <h2 id="activity">{t("activity")}</h2>
      <RequestResult request={tokenRequest}>
        {({ value }) => {
          const token = value.find((row) => row.id === query.value.get("token"));
          return (
            <>
              <SelectField
                name="of-token"
                label={t("choose")}
                value={token?.id ?? ""}
                onChange={(id) => setQuery({ token: id })}
                options={[["", t("choose.none")], ...value.map((row) => [row.id, String(row["label"])] as const)]}
              />
              {token && <AgentActivity key={token.id} {...{ meta, token }} />}
            </>
          );
        }}
      </RequestResult>
    </section>
  );
}
