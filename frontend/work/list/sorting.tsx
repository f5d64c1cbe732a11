// The panel that chooses the sort fields of the list.
import { SelectField } from "../../shared/components/field";
import type { Model } from "../api";
import { ID } from "../models";
import { setOrder, canOrder, type SortKey, MAX_SORT_KEYS } from "./query";
import { translator } from "../../shared/i18n";

const t = translator("list");

export function Sorting({ model, order }: { model: Model; order: readonly SortKey[] }) {
  const fields = [...model.fields, ID].filter(canOrder);
  const sortKeys: (SortKey | null)[] = order.length < MAX_SORT_KEYS ? [...order, null] : [...order];
  const setKey = (index: number, key: SortKey | null) => {
    const newOrder = [...order];
    newOrder.splice(index, 1, ...(key ? [key] : []));
    setOrder(model, newOrder);
  };
  return (
    <div class="stack tight">
      <p class="small quiet">{t("sort.text")}</p>
      {sortKeys.map((key, index) => (
        <div class="filters tight" key={`${index}-${key?.field ?? ""}`}>
          <SelectField
            name={`sort-${index}`}
            label={t(index ? "sort.then" : "sort.by")}
            value={key?.field ?? ""}
            onChange={(field) => setKey(index, field ? { field, dir: key?.dir ?? "asc" } : null)}
            options={[
              ["", t("sort.none")],
              ...fields
                .filter((field) => field.name === key?.field || !order.some((sortKey) => sortKey.field === field.name))
                .map((field) => [field.name, field.label] as const),
            ]}
          />
          {key && (
            <SelectField
              name={`sort-${index}-dir`}
              label={t("sort.dir")}
              value={key.dir}
              onChange={(dir) => setKey(index, { field: key.field, dir: dir === "desc" ? "desc" : "asc" })}
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
