// What a token with these scopes would see, from the description of this person's own rights.
import { Table } from "../../shared/components/table";
import type { Meta } from "../api";
import { say } from "./say";

export function Sees({ meta, chosen }: { meta: Meta; chosen: ReadonlySet<string> }) {
  const rows = meta.models.flatMap((model) => {
    const commands = model.commands.filter((each) => chosen.has(each)).map((each) => each.slice(model.name.length + 1));
    return commands.length ? [{ model, commands }] : [];
  });
  const named = (fields: Meta["models"][number]["fields"], isMasked: boolean) =>
    fields.filter((each) => each.masked === isMasked).map((each) => each.label).join(", ");
  return (
    <section class="stack" aria-labelledby="sees">
      <h2 id="sees">{say("sees")}</h2>
      <p class="quiet small">{say("sees.text")}</p>
      <Table
        caption={say("sees")}
        rows={rows}
        keyOf={({ model }) => model.name}
        columns={[
          { name: "model", label: say("sees.model"), cell: ({ model }) => model.plural },
          { name: "commands", label: say("sees.commands"), cell: ({ commands }) => commands.join(", ") },
          { name: "clear", label: say("sees.clear"), cell: ({ model }) => named(model.fields, false) },
          {
            name: "masked",
            label: say("sees.masked"),
            cell: ({ model }) => [named(model.fields, true), say("sees.personal")].filter(Boolean).join(", "),
          },
        ]}
      />
    </section>
  );
}
