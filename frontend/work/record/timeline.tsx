// What was done to a record, newest first: who, through which agent, and before and after as far as one may see them.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { RequestResult } from "../../shared/components/states";
import { dateTime, number, translator } from "../../shared/i18n";
import { type Meta, type Model, run } from "../api";
import { fieldOf } from "../models";
import { Changes } from "./changes";

const t = translator("record");

interface Entry {
  at: string;
  command: string;
  by: string | null;
  agent: string | null;
  changes: Record<string, [unknown, unknown]>;
}

const SHOWN = 10;

export function Timeline({ meta, model, id, revision }: { meta: Meta; model: Model; id: string; revision: number }) {
  const [isWhole, setWhole] = useState(false);
  const found = useRequest(
    async (signal) => (await run<Entry[]>(model.name, "history", { id }, signal)).value,
    [model.name, id, revision],
    { keepsPrevious: true },
  );
  return (
    <section class="stack" aria-labelledby="history">
      <h2 id="history">{t("history")}</h2>
      <RequestResult of={found}>
        {(entries) => (
          <>
            {entries.length === 0 && <p class="quiet">{t("history.none")}</p>}
            <ol class="timeline">
              {(isWhole ? entries : entries.slice(0, SHOWN)).map((each, place) => (
                <li key={each.at + place}>
                  <p>
                    <code>{each.command}</code> {who(each)}
                    <time class="quiet small" dateTime={each.at}>
                      {dateTime(each.at)}
                    </time>
                  </p>
                  <details open={place === 0}>
                    <summary>{t("history.changes", { n: number(Object.keys(each.changes).length) })}</summary>
                    <Changes
                      meta={meta}
                      changes={Object.entries(each.changes).map(([name, [before, after]]) => ({
                        field: fieldOf(model, name),
                        name,
                        before,
                        after,
                      }))}
                    />
                  </details>
                </li>
              ))}
            </ol>
            {!isWhole && entries.length > SHOWN && (
              <Button onClick={() => setWhole(true)}>{t("history.more", { n: number(entries.length) })}</Button>
            )}
          </>
        )}
      </RequestResult>
    </section>
  );
}

function who({ by, agent }: Entry): string {
  if (agent !== null) {
    return by === null ? t("history.agent.hidden", { agent }) : t("history.agent", { agent, name: by });
  }
  return by === null ? t("history.system") : t("history.by", { name: by });
}
