// The panel that chooses the sort fields of the list.
import { SelectField } from "../../shared/components/field";
import type { Model } from "../api";
import { ID } from "../models";
import { setOrder, canOrder, type SortKey, MOST_KEYS } from "./query";
import { translator } from "../../shared/i18n";

const t = translator("list");

export function Sorting({ model, order }: { model: Model; order: readonly SortKey[] }) {
  const fields = [...model.fields, ID].filter(canOrder);
  const shown: (SortKey | null)[] = order.length < MOST_KEYS ? [...order, null] : [...order];
  const put = (place: number, key: SortKey | null) => {
    const next = [...order];
    next.splice(place, 1, ...(key ? [key] : []));
    setOrder(model, next);
  };
  return (
    <div class="stack tight">
      <p class="small quiet">{t("sort.text")}</p>
      {shown.map((key, place) => (
        <div class="filters tight" key={`${place}-${key?.field ?? ""}`}>
          <SelectField
            name={`sort-${place}`}
            label={t(place ? "sort.then" : "sort.by")}
            value={key?.field ?? ""}
            onChange={(field) => put(place, field ? { field, dir: key?.dir ?? "asc" } : null)}
            options={[
              ["", t("sort.none")],
              ...fields
                .filter((each) => each.name === key?.field || !order.some((other) => other.field === each.name))
                .map((each) => [each.name, each.label] as const),
            ]}
          />
          {key && (
            <SelectField
              name={`sort-${place}-dir`}
              label={t("sort.dir")}
              value={key.dir}
              onChange={(dir) => put(place, { field: key.field, dir: dir === "desc" ? "desc" : "asc" })}
              options={[
                ["asc", t("sort.asc")],
                ["desc", t("sort.desc")],
              ]}
            />
          )}
        </div>
      ))}
    </div>
  );
}
