// The list of agents, each with its person and its last use.
import { date, relativePast, translator } from "../../shared/i18n";
import { Chip } from "../../shared/components/chip";
import type { Meta } from "../api";
import { modelOf, titleOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { AgentAvatar } from "../values/avatar";
import { type AgentToken, isLive } from "./agent_token";

const t = translator("agents");

const NOW_MS = 120_000;

interface Props {
  meta: Meta;
  tokens: readonly AgentToken[];
  lastUsed: ReadonlyMap<string, string>;
  chosen: string | undefined;
}

/** The name of the person that an agent acts for. */
export function personOf(meta: Meta, token: AgentToken): string {
  const model = modelOf(meta, "user");
  const row = model ? referencedRecord(model, token.user).value : null;
  return row && model ? String(row["name"] ?? titleOf(model, row)) : "–";
}

export function AgentList({ meta, tokens, lastUsed, chosen }: Props) {
  return (
    <nav class="agent-list" aria-label={t("known")}>
      <ul>
        {tokens.map((token) => (
          <li key={token.id}>
            <a class="agent" href={`/agents?agent=${encodeURIComponent(token.id)}`} aria-current={token.id === chosen ? "true" : undefined}>
              <AgentAvatar size="m" />
              <span class="grow">
                <span class="agent-label cut">{token.label}</span>
                <span class="agent-for cut">{t("for", { person: personOf(meta, token) })}</span>
              </span>
              <LastUsed token={token} at={lastUsed.get(token.id)} />
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function LastUsed({ token, at }: { token: AgentToken; at: string | undefined }) {
  if (token.ended_at !== null) {
    return <Chip>{t("ended")}</Chip>;
  }
  if (!isLive(token)) {
    return <span class="agent-used">{t("expired.on", { date: date(token.expires_at) })}</span>;
  }
  if (at && Date.now() - Date.parse(at) < NOW_MS) {
    return <span class="live-mark">{t("used.now")}</span>;
  }
  return <span class="agent-used">{at ? relativePast(at) : t("used.never")}</span>;
}
