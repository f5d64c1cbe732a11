// The records that refer to a record, and the records that refer to the same other record: one tab with a count for
// each model.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { type Tab, Tabs } from "../../shared/components/tabs";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { canList, mayRun, modelOf, nounOf, partsOf } from "../models";
import { filterOf, RelatedRecords, type Relation } from "./child_records";
import { translator } from "../../shared/i18n";

const t = translator("record");

const MAX_TABS = 6;

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
  const listableModels = meta.models.filter((model) => canList(model) && model.module !== "base");
  const otherFields = listableModels.flatMap((listableModel) => listableModel.fields.filter((field) => field.ref === model.name && !field.is_part).map((field): [Model, Field] => [listableModel, field]));
  return [...partFields, ...otherFields];
}

/** The records that refer to this one, then those that refer to a record to which this one refers too, such as the
 *  tickets and the other leads of a lead's party. */
function relationsOf(meta: Meta, model: Model, record: Row): Relation[] {
  const direct = referringFields(meta, model);
  const isAlone = (model: Model) => direct.filter(([relatedModel]) => relatedModel === model).length === 1;
  const directRelations = direct.map(([sourceModel, field]) => ({ name: `${sourceModel.name}.${field.name}`, label: isAlone(sourceModel) ? sourceModel.plural : `${sourceModel.plural} (${field.label})`, model: sourceModel, field, to: model, id: record.id, exceptId: null }));
  const indirectRelations = model.fields.flatMap((ref) => {
    const targetModel = modelOf(meta, ref.ref ?? "");
    return targetModel && targetModel.module !== "base" && !ref.is_part && record[ref.name] ? sharedRelations(meta, model, record, ref, targetModel) : [];
  });
  const isNew = (relation: Relation, index: number) => !direct.some(([relatedModel]) => relatedModel === relation.model) && indirectRelations.findIndex(({ name }) => name === relation.name) === index;
  return [...directRelations, ...indirectRelations.filter(isNew)].slice(0, Math.max(MAX_TABS, directRelations.length));
}

/** The records that refer to the same record of `to` as this record, without its parts. Records of this model come
 *  last. */
function sharedRelations(meta: Meta, model: Model, record: Row, ref: Field, targetModel: Model): Relation[] {
  const id = String(record[ref.name]);
  const fields = referringFields(meta, targetModel).filter(([, field]) => !field.is_part);
  const relations = fields.map(([sourceModel, field]): Relation => {
    const label = sourceModel === model ? t("related.others", { models: nounOf(sourceModel.plural), model: nounOf(targetModel.label) }) : sourceModel.plural;
    return { name: `${targetModel.name}.${sourceModel.name}.${field.name}`, label, model: sourceModel, field, to: targetModel, id, exceptId: sourceModel === model && field.name === ref.name ? record.id : null };
  });
  return relations.sort((relation, otherRelation) => Number(relation.model === model) - Number(otherRelation.model === model));
}

export function Related({ meta, model, record, onChanged }: Props) {
  const relations = relationsOf(meta, model, record);
  const [chosenTab, setChosenTab] = useState("");
  const [reloadCount, setReloadCount] = useState(0);
  const counts = useRequest((signal) => countsOf(relations, signal), [model.name, record.id, record.revision, reloadCount], { keepsPrevious: true });
  if (relations.length === 0) {
    return null;
  }
  const tabOf = (relation: Relation): Tab => ({
    name: relation.name,
    label: relation.label,
    count: counts.state === "loaded" ? counts.value[relation.name] : undefined,
    content: () => (
      <RelatedRecords
        key={relation.name}
        {...{ meta, relation }}
        revision={record.revision}
        onChanged={() => {
          setReloadCount(reloadCount + 1);
          if (relation.field.is_part) {
            onChanged();
          }
        }}
      />
    ),
  });
  return (
    <section class="related" aria-label={t("related")}>
      <Tabs label={t("related")} chosen={chosenTab} onChoose={setChosenTab} tabs={relations.map(tabOf)} />
    </section>
  );
}

/** The number of records of each relation, if this person may count them. */
async function countsOf(relations: readonly Relation[], signal: AbortSignal): Promise<Record<string, number>> {
  const ids = new Map(relations.map((relation) => [relation.id, relation.to]));
  const counts = await Promise.all([...ids].map(([id, targetModel]) => countsTo(targetModel, id, relations.filter((relation) => relation.id === id), signal)));
  return Object.fromEntries(counts.flat());
}

async function countsTo(targetModel: Model, id: string, relations: readonly Relation[], signal: AbortSignal): Promise<(readonly [string, number])[]> {
  if (mayRun(targetModel, "related")) {
    const response = await run<{ model: string; field: string; count: number }[]>(targetModel.name, "related", { id, limit: 0 }, signal);
    return relations.flatMap(({ name, model, field, exceptId }) =>
      response.value.filter((entry) => entry.model === model.name && entry.field === field.name).map((entry) => [name, entry.count - (exceptId ? 1 : 0)] as const),
    );
  }
  const counts = relations
    .filter((relation) => mayRun(relation.model, "search"))
    .map(async (relation) => {
      const response = await run<{ total: number }>(relation.model.name, "search", { filter: filterOf(relation), limit: 1 }, signal).catch(() => null);
      return response ? [[relation.name, response.value.total] as const] : [];
    });
  return (await Promise.all(counts)).flat();
}
