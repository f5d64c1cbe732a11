// Who did what the audit tells: a person, or an agent for a person.
import type { Meta } from "../api";
import { modelOf } from "../models";
import { Referred } from "../values/referred";
import type { Entry } from "./asking";
import { translator } from "../../shared/i18n";

const t = translator("audit");

export function Who({ meta, entry }: { meta: Meta; entry: Entry }) {
  const person = entry.user_id ? <Referred model={modelOf(meta, "user")} id={entry.user_id} /> : <span class="quiet">–</span>;
  return entry.agent ? (
    <>
      {t("agent.for", { agent: entry.agent })} {person}
    </>
  ) : (
    person
  );
}
