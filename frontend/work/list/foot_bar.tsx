// The footer of a list: the number of records, the sums of their amounts over the whole result, and keyboard hints.
import type { ComponentChildren } from "preact";
import { plural, translator } from "../../shared/i18n";
import { formatAmount } from "../values/money";
import type { Model } from "../api";
import { fieldOf, mayRun, nounOf } from "../models";
import { hasBulkCommands } from "./bulk";
import type { Rows } from "./rows";

const t = translator("list");
const MAX_SUMS = 2;

export function FootBar({ model, rows, children }: { model: Model; rows: Rows; children: ComponentChildren }) {
  const total = rows.total.value;
  const sums = Object.entries(rows.sums.value).filter(([, sum]) => sum.sum !== null && sum.count > 0).slice(0, MAX_SUMS);
  const firstSum = sums[0];
  return (
    <div class="foot-bar">
      <span class="count" role="status">
        {total === null ? t("counting") : plural(total, t("count.one"), t("count"))}
      </span>
      {sums.map(([name, { sum }], index) => (
        <span key={name} class={index > 0 ? "bar-words" : "foot-sum"}>
          <span class="cut">{t("sum", { label: nounOf(fieldOf(model, name)?.label ?? name) })}</span>{" "}
          <b>{formatAmount(sum ?? 0, fieldOf(model, name)?.currency)}</b>
        </span>
      ))}
      {firstSum && (
        <span class="bar-words">
          {t("average")} <b>{formatAmount(Math.round((firstSum[1].sum ?? 0) / firstSum[1].count), fieldOf(model, firstSum[0])?.currency)}</b>
        </span>
      )}
      <span class="keys-hint right">
        <KeyHint keyName="↵">{t("key.short.open")}</KeyHint>
        {mayRun(model, "update") && <KeyHint keyName="F2">{t("key.short.edit")}</KeyHint>}
        {hasBulkCommands(model) && <KeyHint keyName={t("key.space")}>{t("key.short.select")}</KeyHint>}
        <KeyHint keyName="?">{t("key.short.all")}</KeyHint>
      </span>
      {children}
    </div>
  );
}

function KeyHint({ keyName, children }: { keyName: string; children: string }) {
  return (
    <span>
      <kbd>{keyName}</kbd> {children}
    </span>
  );
}
