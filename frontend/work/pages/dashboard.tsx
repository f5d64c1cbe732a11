// Figures of every model: how many records there are of each value, as far as this person may see them.
import { Heading } from "../../shared/components/heading";
import { Empty } from "../../shared/components/states";
import type { Field, Meta, Model } from "../api";
import { ValueCounts } from "../board/value_counts";
import { workflowField, may, businessModels } from "../models";
import { translator } from "../../shared/i18n";

const t = translator("board");

/** The fields records are plural by, the one that the workflow moves first. */
function plural(model: Model): Field[] {
  const fields = model.fields.filter((each) => !each.masked && ["select", "bool", "ref", "date"].includes(each.kind));
  const first = workflowField(model) ?? fields.find((each) => each.kind === "select");
  return first ? [first, ...fields.filter((each) => each !== first)] : fields;
}

export function Dashboard({ meta }: { meta: Meta }) {
  const models = businessModels(meta).filter((each) => may(each, "count_by") && plural(each).length > 0);
  return (
    <div class="stack">
      <Heading title={t("dashboard")} />
      {models.length === 0 && <Empty title={t("none")} />}
      <div class="figures">
        {models.map((model) => (
          <ValueCounts key={model.name} meta={meta} model={model} fields={plural(model)} />
        ))}
      </div>
    </div>
  );
}
