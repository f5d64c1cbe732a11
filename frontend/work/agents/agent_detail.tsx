// One agent: its person, its calls, its permissions, and the settings for connecting a client with its token.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Dialog } from "../../shared/components/dialog";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { Chart } from "../../shared/chart";
import { date, dateTime, number, plural, relativePast, translator } from "../../shared/i18n";
import { useRequest } from "../../shared/request";
import type { Meta, Model } from "../api";
import { ClientSetup } from "../connect/client_setup";
import { mayRun } from "../models";
import { AgentAvatar } from "../values/avatar";
import { KeyFigure, Widget } from "../widgets/widget";
import { personOf } from "./agent_list";
import { type AgentToken, type ModelPermissions, commandsOf, isLive, listOf, permissionsOf } from "./agent_token";
import { CallLog } from "./call_log";
import { type AgentHistory, type Call, callsPerDay, canReadAudit, knowsCalls, loadHistory } from "./calls";
import type { Command } from "./commands";
import { deniedCommands, DeniedCommands } from "./denied_commands";
import { PermissionWords } from "./permission_words";
import { PermissionMatrix } from "./permission_matrix";
import { TokenAccess } from "./token_access";

const t = translator("agents");

const EVERY_MS = 5000;
const DAYS = 30;
/** The number of days for which the service keeps calls. */
const LOGGED_DAYS = 7;
const DAY_MS = 86_400_000;

interface Props {
  meta: Meta;
  model: Model;
  token: AgentToken;
  known: readonly Command[];
  lastUsed: string | undefined;
  /** Whether the agent acts for the person who is signed in. Only this person can issue a new token for the agent,
   *  because a token acts for the person who issues it. */
  isOwn: boolean;
  onRevoke: (token: AgentToken) => void;
}

export function AgentDetail({ meta, model, token, known, lastUsed, isOwn, onRevoke }: Props) {
  const [isPaused, setPaused] = useState(false);
  const [isViewing, setViewing] = useState(false);
  const lastHistory = useRef<AgentHistory | null>(null);
  const historyRequest = useRequest(async (signal) => (lastHistory.current = await loadHistory(meta, token, lastHistory.current, signal)), [token.id], { keepsPrevious: true });
  useEffect(() => {
    const timer = setInterval(() => !isPaused && document.visibilityState === "visible" && isLive(token) && historyRequest.reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [isPaused, token.id]);
  const chosen = commandsOf(meta, token);
  // Leave out the model `plan`: every agent that may propose may also read its plans.
  const rows = permissionsOf(meta, known, chosen, listOf(token.unmask)).filter((row) => row.model.name !== "plan");
  const permitted = rows.filter(isSomething);
  const denied = deniedCommands(meta, chosen);
  const edit = isOwn && isLive(token) ? { link: { href: `/agents?new=1&like=${encodeURIComponent(token.id)}`, label: t("edit") } } : {};
  return (
    <div class="agent-detail">
      <header class="agent-head">
        <AgentAvatar size="l" />
        <div class="grow">
          <h2>{token.label}</h2>
          <p class="quiet">
            {t("acts.for", { person: personOf(meta, token) })}
            {" · "}
            {lastUsed ? t("last.used", { when: relativePast(lastUsed) }) : t("used.never")}
            {" · "}
            {lifeOf(token)}
          </p>
        </div>
        <div class="row">
          <Button onClick={() => setViewing(true)}>
            <Icon name="eye" />
            {t("view.as")}
          </Button>
          {mayRun(model, "revoke") && isLive(token) && (
            <Button variant="risky" aria-label={t("revoke.title", { label: token.label })} onClick={() => onRevoke(token)}>
              <Icon name="circle-x" />
              {t("revoke")}
            </Button>
          )}
          {!isLive(token) && <Chip>{t(token.ended_at === null ? "expired" : "ended")}</Chip>}
        </div>
      </header>
      <RequestResult request={historyRequest}>
        {(history) => (
          <>
            <Tiles {...{ meta, token, history }} />
            <div class="agent-columns">
              <div class="agent-column">
                <CallLog {...{ meta, isPaused }} calls={history.calls} token={token.id} onPause={setPaused} />
                {history.calls.length > 0 && <PerDay calls={history.calls} days={knowsCalls(meta) ? LOGGED_DAYS : DAYS} />}
              </div>
              <div class="agent-column">
                <Widget title={t("may")} {...edit}>
                  {permitted.length === 0 ? <p class="widget-empty">{t("may.none")}</p> : <PermissionMatrix rows={permitted} />}
                  <details class="widget-details">
                    <summary>{t("words")}</summary>
                    <PermissionWords {...{ meta, rows }} unmasked={listOf(token.unmask)} />
                  </details>
                  {denied.length > 0 && (
                    <details class="widget-details">
                      <summary>{t("denied")}</summary>
                      <DeniedCommands denied={denied} />
                    </details>
                  )}
                  <details class="widget-details">
                    <summary>{t("scopes.exact")}</summary>
                    <code class="wraps">{listOf(token.scopes).join(", ")}</code>
                    {token.unmask && (
                      <p>
                        {t("unmasked")} <code class="wraps">{listOf(token.unmask).join(", ")}</code>
                      </p>
                    )}
                    <p class="quiet">{t("issued.on", { date: dateTime(token.issued_at) })}</p>
                  </details>
                </Widget>
                <Widget title={t("client")} size="setup">
                  <ClientSetup isNarrow />
                </Widget>
              </div>
            </div>
          </>
        )}
      </RequestResult>
      <Dialog title={t("view.as.title", { label: token.label })} variant="wide" isOpen={isViewing} onClose={() => setViewing(false)}>
        <TokenAccess meta={meta} chosen={chosen} unmasked={listOf(token.unmask)} />
      </Dialog>
    </div>
  );
}

function isSomething({ read, write, remove }: ModelPermissions): boolean {
  return [read, write, remove].some((answer) => answer !== "no");
}

function lifeOf(token: AgentToken): string {
  if (token.ended_at !== null) {
    return t("ended.on", { date: date(token.ended_at) });
  }
  return t(isLive(token) ? "expires.on" : "expired.on", { date: date(token.expires_at) });
}

function Tiles({ meta, token, history: { calls, plans } }: { meta: Meta; token: AgentToken; history: AgentHistory }) {
  const since = new Date(Date.now() - DAY_MS).toISOString();
  const recent = calls.filter((call) => call.at >= since);
  const waiting = plans.filter((plan) => plan.state === "pending").length;
  const refusedCount = token.refused_24h ?? (knowsCalls(meta) ? recent.filter((call) => call.result === "refused").length : null);
  const times = recent.flatMap((call) => call.ms ?? []).toSorted((a, b) => a - b);
  const slow = times[Math.floor(times.length * 0.95)];
  const changes = calls.filter((call) => call.result === "done");
  return (
    <div class="tiles">
      {knowsCalls(meta) && <KeyFigure label={t("tile.calls")} value={number(token.calls_24h ?? recent.length)} note={slow !== undefined && t("tile.p95", { n: number(Math.round(slow)) })} />}
      {(canReadAudit(meta) || knowsCalls(meta)) && <KeyFigure label={t("tile.changes")} value={number(changes.length)} note={t("tile.day", { n: number(changes.filter((change) => change.at >= since).length) })} />}
      <KeyFigure label={t("tile.proposals")} value={number(plans.length)} note={decidedNote(plans)} href={waiting > 0 ? "/approvals" : undefined} />
      {refusedCount !== null && <KeyFigure label={t("tile.refused")} value={number(refusedCount)} note={refusedCount > 0 ? <span class="bad">{refusedTools(recent)}</span> : t("tile.refused.none")} />}
    </div>
  );
}

/** Return how many plans of the agent are in each state, such as "2 waiting, 1 approved". */
function decidedNote(plans: AgentHistory["plans"]): string {
  const count = (state: string) => plans.filter((plan) => plan.state === state).length;
  const [waiting, approved, rejected] = [count("pending"), count("executed"), count("rejected")];
  const parts = [
    waiting > 0 && plural(waiting, t("tile.waiting.one"), t("tile.waiting")),
    approved > 0 && t("tile.approved", { n: number(approved) }),
    rejected > 0 && t("tile.rejected", { n: number(rejected) }),
  ];
  return parts.filter(Boolean).join(", ") || t("tile.waiting", { n: number(0) });
}

/** Return the names of the two tools that were refused last. */
function refusedTools(calls: readonly Call[]): string {
  return [...new Set(calls.filter((call) => call.result === "refused").map((call) => call.tool))].slice(0, 2).join(", ");
}

function PerDay({ calls, days: count }: { calls: readonly Call[]; days: number }) {
  const days = callsPerDay(calls, count, Date.now());
  const title = t("per.day");
  return (
    <Widget title={title} end={<span class="quiet end">{t("days", { n: number(count) })}</span>}>
      <div class="widget-chart">
        <Chart title={title} kind="line" height={150} days={days.map((day) => day.day)} series={[{ name: t("calls"), values: days.map((day) => day.count), hue: 1, hasArea: true }]} />
      </div>
    </Widget>
  );
}
