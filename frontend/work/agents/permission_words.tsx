// What an agent sees and may do, in sentences.
import { Icon, type IconName } from "../../shared/components/icon";
import { joinWords, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { nounOf } from "../models";
import { type ModelPermissions, type Permission } from "./agent_token";

const t = translator("agents");

const DONE: readonly Permission[] = ["yes", "partly", "masked"];
/** The maximum number of fields that are named. */
const MAX_FIELDS = 6;

interface Props {
  meta: Meta;
  rows: readonly ModelPermissions[];
  /** The personal fields that the agent sees in clear: "lead.contact_name". */
  unmasked: readonly string[];
}

export function PermissionWords({ meta, rows, unmasked }: Props) {
  const named = (isIncluded: (row: ModelPermissions) => boolean) => joinWords(rows.filter(isIncluded).map(({ model }) => nounOf(model.plural)));
  const lines: { icon: IconName; key: "reads" | "changes" | "proposes" | "masks" | "closed"; names: string }[] = [
    { icon: "eye", key: "reads", names: named((row) => DONE.includes(row.read)) },
    { icon: "pencil", key: "changes", names: named((row) => DONE.includes(row.write) || DONE.includes(row.remove)) },
    { icon: "inbox", key: "proposes", names: named((row) => row.write === "proposes" || row.remove === "proposes") },
    { icon: "lock", key: "masks", names: maskedFields(meta, rows, unmasked) },
    { icon: "x", key: "closed", names: named((row) => row.read === "no" && row.write === "no" && row.remove === "no") },
  ];
  const sentences = lines.filter((line) => line.names);
  return sentences.length === 0 ? null : (
    <ul class="may-words">
      {sentences.map(({ icon, key, names }) => (
        <li key={key}>
          <Icon name={icon} size="s" />
          <span>
            <strong>{t(`words.${key}`)}</strong> {names}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The labels of the personal fields that the agent reads as placeholders. */
function maskedFields(meta: Meta, rows: readonly ModelPermissions[], unmasked: readonly string[]): string {
  const read = rows.filter((row) => DONE.includes(row.read)).map(({ model }) => model.name);
  const fields = meta.models
    .filter((model) => read.includes(model.name))
    .flatMap((model) => model.fields.filter((field) => field.masked || (field.is_personal && !unmasked.includes(`${model.name}.${field.name}`))));
  const labels = [...new Set(fields.map((field) => nounOf(field.label)))];
  return joinWords(labels.length > MAX_FIELDS ? [...labels.slice(0, MAX_FIELDS), t("words.more")] : labels);
}
