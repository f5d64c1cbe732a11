// The comments that mention the person.
import { translator } from "../../shared/i18n";
import { addressOf } from "../models";
import { shortPast } from "../relative_time";
import { AgentAvatar, Avatar } from "../values/avatar";
import { Widget } from "../widgets/widget";

const t = translator("home");

/** A comment that mentions the person. */
export interface Mention {
  at: string;
  by: string | null;
  agent: string | null;
  comment: string;
  record: { model: string; id: string; title: unknown };
}

export function Mentions({ mentions, now_ms }: { mentions: readonly Mention[]; now_ms: number }) {
  return (
    <Widget title={t("mentions")} count={mentions.length}>
      <ul>
        {mentions.map(({ at, by, agent, comment, record }) => (
          <li key={comment} class="widget-row">
            {agent === null ? <Avatar name={by ?? "–"} /> : <AgentAvatar />}
            <a class="cut grow" href={addressOf(record.model, record.id)}>
              {t("mentions.by", { name: agent ?? by ?? t("someone") })} <span class="quiet">{String(record.title ?? "")}</span>
            </a>
            <time class="when age" dateTime={at}>
              {shortPast(at, now_ms)}
            </time>
          </li>
        ))}
      </ul>
    </Widget>
  );
}
