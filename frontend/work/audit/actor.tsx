// The actor of an audit entry: a person, or an agent for a person.
import type { Meta } from "../api";
import { modelOf } from "../models";
import { RecordLink } from "../values/record_link";
import type { Entry } from "./filter";
import { translator } from "../../shared/i18n";

const t = translator("audit");

export function Actor({ meta, entry }: { meta: Meta; entry: Entry }) {
  const person = entry.user_id ? <RecordLink model={modelOf(meta, "user")} id={entry.user_id} /> : <span class="quiet">–</span>;
  return entry.agent ? (
    <>
      {t("agent.for", { agent: entry.agent })} {person}
    </>
  ) : (
    person
  );
}
