// The access that a token gives: before it is issued, by this person's permissions; afterwards, as the API describes it.
import type { Column } from "../../shared/components/table";
import { Table } from "../../shared/components/table";
import type { Field, Meta, Model } from "../api";
import { translator } from "../../shared/i18n";

const t = translator("agents");

interface AccessRow {
  model: Model;
  commands: string[];
}

interface Props {
  meta: Meta;
  /** The chosen commands. If undefined, `meta` is the description for the token itself. */
  chosen?: ReadonlySet<string>;
  /** The personal fields that the token shows in clear, such as "lead.contact_name". */
  unmasked?: readonly string[];
}

export function TokenAccess({ meta, chosen, unmasked = [] }: Props) {
  const rows = meta.models.flatMap((model): AccessRow[] => {
    const commands = model.commands.filter((command) => !chosen || chosen.has(command)).map((command) => command.slice(model.name.length + 1));
    return commands.length ? [{ model, commands }] : [];
  });
  const named = (fields: Field[]) => fields.map((field) => field.label).join(", ") || "–";
  const isMasked = (model: Model, field: Field) => field.masked || (chosen !== undefined && field.is_personal === true && !unmasked.includes(`${model.name}.${field.name}`));
  const fields: Column<AccessRow>[] = [
    { name: "clear", label: t("sees.clear"), cell: ({ model }) => named(model.fields.filter((field) => !isMasked(model, field))) },
    { name: "masked", label: t("sees.masked"), cell: ({ model }) => named(model.fields.filter((field) => isMasked(model, field))) },
  ];
  return (
    <div class="stack">
      <h3>{t("sees")}</h3>
      <p class="quiet small">{t(chosen ? "sees.text" : "sees.true")}</p>
      <Table
        caption={t("sees")}
        rows={rows}
        keyOf={({ model }) => model.name}
        columns={[
          { name: "model", label: t("sees.model"), cell: ({ model }) => model.plural },
          { name: "commands", label: t("sees.commands"), cell: ({ commands }) => commands.join(", ") },
          ...fields,
        ]}
      />
    </div>
  );
}
