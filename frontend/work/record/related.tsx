// The records that refer to a record: a tab per model with their number, parts first. New records are added there.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Tabs } from "../../shared/components/tabs";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { canList, may, partsOf } from "../models";
import { RelatedRecords } from "./parts";
import { translator } from "../../shared/i18n";

const t = translator("record");

interface Props {
  meta: Meta;
  model: Model;
  record: Row;
  /** Called after a part was added, because computed fields of the record change too. */
  onChanged: () => void;
}

/** The models whose records refer to this model's, each with its ref. Parts come first; engine models are omitted. */
function referringFields(meta: Meta, model: Model): [Model, Field][] {
  const partFields = partsOf(meta, model);
  const listableModels = meta.models.filter((each) => canList(each) && each.module !== "base");
  const otherFields = listableModels.flatMap((each) => each.fields.filter((field) => field.ref === model.name && !field.is_part).map((field): [Model, Field] => [each, field]));
  return [...partFields, ...otherFields];
}

export function Related({ meta, model, record, onChanged }: Props) {
  const referring = referringFields(meta, model);
  const [chosenTab, setChosenTab] = useState("");
  const [reloadCount, setReloadCount] = useState(0);
  const counts = useRequest((signal) => countsOf(model, referring, record.id, signal), [model.name, record.id, record.revision, reloadCount], { keepsPrevious: true });
  if (referring.length === 0) {
    return null;
  }
  const nameOf = ([each, field]: [Model, Field]) => `${each.name}.${field.name}`;
  const labelOf = ([each, field]: [Model, Field]) => (referring.filter(([other]) => other === each).length > 1 ? `${each.plural} (${field.label})` : each.plural);
  return (
    <section class="related" aria-label={t("related")}>
      <Tabs
        label={t("related")}
        chosen={chosenTab}
        onChoose={setChosenTab}
        tabs={referring.map((each) => ({
          name: nameOf(each),
          label: labelOf(each),
          count: counts.state === "loaded" ? counts.value[nameOf(each)] : undefined,
          content: () => (
            <RelatedRecords
              key={nameOf(each)}
              {...{ meta, model: each[0], parentField: each[1], record }}
              onChanged={() => {
                setReloadCount(reloadCount + 1);
                if (each[1].is_part) {
                  onChanged();
                }
              }}
            />
          ),
        }))}
      />
    </section>
  );
}

/** The number of records of each model that refer to this one, if this person may count them. */
async function countsOf(model: Model, referring: readonly [Model, Field][], id: string, signal: AbortSignal): Promise<Record<string, number>> {
  if (may(model, "related")) {
    const response = await run<{ model: string; field: string; count: number }[]>(model.name, "related", { id, limit: 1 }, signal);
    return Object.fromEntries(response.value.map((each) => [`${each.model}.${each.field}`, each.count]));
  }
  const counts = await Promise.all(
    referring
      .filter(([model]) => may(model, "search"))
      .map(async ([model, field]) => {
        const filter = [{ field: field.name, op: "eq", value: id }];
        const response = await run<{ total: number }>(model.name, "search", { filter, limit: 1 }, signal).catch(() => null);
        return response ? [[`${model.name}.${field.name}`, response.value.total] as const] : [];
      }),
  );
  return Object.fromEntries(counts.flat());
}
