// The foot of a list: the number of records, the sums of their amounts over the whole result, and keyboard hints.
import { plural, translator } from "../../shared/i18n";
import { formatMoney } from "../values/money";
import type { Model } from "../api";
import { nounOf } from "../models";
import type { Rows } from "./rows";

const t = translator("list");
const MOST_SUMS = 2;

export function FootBar({ model, rows }: { model: Model; rows: Rows }) {
  const total = rows.total.value;
  const sums = Object.entries(rows.sums.value).filter(([, each]) => each.sum !== null && each.count > 0).slice(0, MOST_SUMS);
  const first = sums[0]?.[1];
  return (
    <div class="foot-bar">
      <span class="count" role="status">
        {total === null ? t("counting") : plural(total, t("count.one"), t("count"))}
      </span>
      {sums.map(([name, { sum }]) => {
        const label = model.fields.find((each) => each.name === name)?.label ?? name;
        return (
          <span key={name}>
            {t("sum", { label: nounOf(label) })} <b>{formatMoney(sum ?? 0)}</b>
          </span>
        );
      })}
      {first && (
        <span>
          {t("average")} <b>{formatMoney(Math.round((first.sum ?? 0) / first.count))}</b>
        </span>
      )}
      <span class="keys-hint right">
        <kbd>↵</kbd> {t("key.short.open")} <kbd>F2</kbd> {t("key.short.edit")} <kbd>{t("key.space")}</kbd> {t("key.short.select")} <kbd>?</kbd> {t("key.short.all")}
      </span>
    </div>
  );
}
