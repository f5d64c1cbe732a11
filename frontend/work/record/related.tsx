// The records that refer to a record: a tab per model with their number, parts first. New records are added there.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Tabs } from "../../shared/components/tabs";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { canList, may, partsOf } from "../models";
import { Part } from "./parts";
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
function incoming(meta: Meta, model: Model): [Model, Field][] {
  const parts = partsOf(meta, model);
  const listed = meta.models.filter((each) => canList(each) && each.module !== "base");
  const others = listed.flatMap((each) => each.fields.filter((field) => field.ref === model.name && !field.is_part).map((field): [Model, Field] => [each, field]));
  return [...parts, ...others];
}

export function Related({ meta, model, record, onChanged }: Props) {
  const all = incoming(meta, model);
  const [chosen, setChosen] = useState("");
  const [round, setRound] = useState(0);
  const counts = useRequest((signal) => countsOf(model, all, record.id, signal), [model.name, record.id, record.revision, round], { keepsPrevious: true });
  if (all.length === 0) {
    return null;
  }
  const nameOf = ([each, by]: [Model, Field]) => `${each.name}.${by.name}`;
  const labelOf = ([each, by]: [Model, Field]) => (all.filter(([other]) => other === each).length > 1 ? `${each.plural} (${by.label})` : each.plural);
  return (
    <section class="related" aria-label={t("related")}>
      <Tabs
        label={t("related")}
        chosen={chosen}
        onChoose={setChosen}
        tabs={all.map((each) => ({
          name: nameOf(each),
          label: labelOf(each),
          count: counts.state === "loaded" ? counts.value[nameOf(each)] : undefined,
          content: () => (
            <Part
              key={nameOf(each)}
              {...{ meta, model: each[0], by: each[1], record }}
              onChanged={() => {
                setRound(round + 1);
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
async function countsOf(of: Model, all: readonly [Model, Field][], id: string, signal: AbortSignal): Promise<Record<string, number>> {
  if (may(of, "related")) {
    const found = await run<{ model: string; field: string; count: number }[]>(of.name, "related", { id, limit: 1 }, signal);
    return Object.fromEntries(found.value.map((each) => [`${each.model}.${each.field}`, each.count]));
  }
  const found = await Promise.all(
    all
      .filter(([model]) => may(model, "search"))
      .map(async ([model, by]) => {
        const filter = [{ field: by.name, op: "eq", value: id }];
        const answer = await run<{ total: number }>(model.name, "search", { filter, limit: 1 }, signal).catch(() => null);
        return answer ? [[`${model.name}.${by.name}`, answer.value.total] as const] : [];
      }),
  );
  return Object.fromEntries(found.flat());
}
