// Agents: the list with their last use, one of them in detail, a new one in three steps.
import { useRef, useState } from "preact/hooks";
import { Button, LinkButton } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { NotFound } from "../../shared/components/shell";
import { Empty, RequestResult } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { useRequest } from "../../shared/request";
import { query, setQuery } from "../../shared/router";
import { showToast } from "../../shared/toast";
import { number, translator } from "../../shared/i18n";
import { AgentDetail } from "../agents/agent_detail";
import { AgentList } from "../agents/agent_list";
import { type AgentToken, isLive, ownUser } from "../agents/agent_token";
import { loadLastUsed } from "../agents/calls";
import { commands } from "../agents/commands";
import { NewAgent } from "../agents/new_agent";
import { type Meta, type Model, run } from "../api";
import { modelOf } from "../models";
import { isNarrow } from "../screen_size";
import { AgentAvatar } from "../values/avatar";
import "../agents/agent_pages.css";
import "../head_action.css";
import "../agents/agents.css";

const t = translator("agents");

const MAX_TOKENS = 200;

export function Agents({ meta }: { meta: Meta }) {
  const model = modelOf(meta, "agent_token");
  return model ? <AgentsContent meta={meta} model={model} /> : <NotFound />;
}

async function load(meta: Meta, signal: AbortSignal) {
  const order = [{ field: "issued_at", dir: "desc" }];
  const [tokenAnswer, knownCounts] = await Promise.all([run<AgentToken[]>("agent_token", "list", { order, limit: MAX_TOKENS }, signal), commands(signal)]);
  const [lastUsed, me] = await Promise.all([loadLastUsed(meta, tokenAnswer.value, signal), ownUser(meta, tokenAnswer.value, signal)]);
  const lastUseOf = (token: AgentToken) => lastUsed.get(token.id) ?? token.issued_at;
  const sortedTokens = tokenAnswer.value.toSorted((a, b) => Number(isLive(b)) - Number(isLive(a)) || lastUseOf(b).localeCompare(lastUseOf(a)));
  return { tokens: sortedTokens, lastUsed, known: knownCounts, me };
}

function AgentsContent({ meta, model }: { meta: Meta; model: Model }) {
  const [leaving, setLeaving] = useState<AgentToken | null>(null);
  const isMaking = query.value.get("new") === "1";
  const agentsRequest = useRequest((signal) => load(meta, signal), [], { keepsPrevious: true });
  const lastLoaded = useRef(agentsRequest);
  if (agentsRequest.state === "loaded" || !isMaking || lastLoaded.current.state !== "loaded") {
    lastLoaded.current = agentsRequest;
  }
  const revoke = async (token: AgentToken) => {
    setLeaving(null);
    try {
      await run("agent_token", "revoke", { id: token.id });
      showToast(t("revoked"));
    } catch (error) {
      showToast(Problem.from(error).message);
    }
    agentsRequest.reload();
  };
  const count = agentsRequest.state === "loaded" ? agentsRequest.value.tokens.filter(isLive).length : null;
  return (
    <div class="page">
      <Heading title={t("title")}>
        {count !== null && <span class="quiet num">{number(count)}</span>}
        <span class="right" />
        <LinkButton tight href="/connect">
          <Icon name="plug" />
          {t("how")}
        </LinkButton>
        {!isMaking && (
          <div class="head-action">
            <Button tight variant="strong" onClick={() => setQuery({ new: "1" }, { replaces: false })}>
              <Icon name="plus" />
              {t("create")}
            </Button>
          </div>
        )}
      </Heading>
      {/* While a token is made and shown, a reload that fails does not replace it by an error: it is shown only once. */}
      <RequestResult request={lastLoaded.current}>
        {({ tokens, lastUsed, known, me }) => {
          const chosenId = query.value.get("agent");
          const chosenToken = tokens.find((token) => token.id === chosenId) ?? tokens[0];
          const likeId = query.value.get("like");
          const like = tokens.find((token) => token.id === likeId && token.user === me);
          const isAlone = isMaking || isNarrow.value;
          if (tokens.length === 0 && !isMaking) {
            return (
              <Empty icon="bot" title={t("none")}>
                <p>{t("lead")}</p>
              </Empty>
            );
          }
          return (
            <div class={tokens.length === 0 || isAlone ? "agents alone" : "agents"}>
              {!isNarrow.value && tokens.length > 0 && <AgentList {...{ meta, tokens, lastUsed }} chosen={isMaking ? undefined : chosenToken?.id} />}
              {isMaking ? (
                <div class="agent-detail">
                  <p class="quiet">{t("lead")}</p>
                  <NewAgent key={likeId} {...{ meta, known, like }} onMade={agentsRequest.reload} onRevoke={setLeaving} onClose={() => setQuery({ new: "", like: "" })} />
                </div>
              ) : (
                chosenToken && (
                  <>
                    {isNarrow.value && tokens.length > 1 && (
                      <details key={`all-${chosenToken.id}`} class="agents-all">
                        <summary>
                          <AgentAvatar size="m" />
                          <strong class="cut">{chosenToken.label}</strong>
                          <span class="agent-switch">
                            {t("all.agents")} <span class="quiet num">{number(tokens.length)}</span>
                            <Icon name="chevron-down" size="s" />
                          </span>
                        </summary>
                        <AgentList {...{ meta, tokens, lastUsed }} chosen={chosenToken.id} />
                      </details>
                    )}
                    <AgentDetail key={chosenToken.id} {...{ meta, model, known }} token={chosenToken} lastUsed={lastUsed.get(chosenToken.id)} isOwn={chosenToken.user === me} onRevoke={setLeaving} />
                  </>
                )
              )}
            </div>
          );
        }}
      </RequestResult>
      <Dialog
        title={t("revoke.title", { label: leaving?.label ?? "" })}
        isOpen={leaving !== null}
        onClose={() => setLeaving(null)}
        actions={
          leaving && (
            <Button variant="risky" onClick={() => void revoke(leaving)}>
              {t("revoke")}
            </Button>
          )
        }
      >
        <p>{t("revoke.text")}</p>
      </Dialog>
    </div>
  );
}
