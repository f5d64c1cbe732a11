// The most important change of a proposal in one line: the present value and the proposed value.
import type { ComponentChildren } from "preact";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { date, number, shortDate, translator } from "../../shared/i18n";
import type { Field, Meta, Model } from "../api";
import { fieldOf, modelOf, titleOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { formatWholeAmount } from "../values/money";
import { optionLabel } from "../values/options";
import type { Difference } from "./plan";

const t = translator("approvals");
const tCommon = translator("common");

/** The kinds with short values, the most important kind first. The state of the record comes before all of them. */
const SHORT_KINDS = ["money", "select", "ref", "date", "number", "bool"];
const MAX_LABELS = 3;

interface Props {
  meta: Meta;
  model: Model | undefined;
  changes: readonly Difference[];
}

/** The most important change with its values, or only the labels of the fields if this person sees no short value. */
export function ChangeSummary({ meta, model, changes }: Props): ComponentChildren {
  const tellingDifference = tellingChange(model, changes);
  const otherCount = changes.length - (tellingDifference ? 1 : Math.min(changes.length, MAX_LABELS));
  const othersText = otherCount > 0 && ` ${t("others", { n: number(otherCount) })}`;
  if (!tellingDifference) {
    return (
      <span class="about-change">
        : {changes.slice(0, MAX_LABELS).map(({ field }) => fieldOf(model, field)?.label ?? field).join(", ")}
        {othersText}
      </span>
    );
  }
  const { field, before, after } = tellingDifference;
  return (
    <span class="about-change">
      {" · "}
      {isEmpty(before) ? `${field.label}:` : <ShortValue {...{ meta, field }} value={before} />}
      {!isEmpty(before) && " →"} {isEmpty(after) ? "–" : <ShortValue {...{ meta, field }} value={after} />}
      {othersText}
    </span>
  );
}

function tellingChange(model: Model | undefined, changes: readonly Difference[]): { field: Field; before: unknown; after: unknown } | undefined {
  const rank = (field: Field) => (field.name === model?.state_field ? -1 : SHORT_KINDS.indexOf(field.kind));
  return changes
    .flatMap(({ field: name, before, after }) => {
      const field = fieldOf(model, name);
      return field && !field.masked && SHORT_KINDS.includes(field.kind) ? [{ field, before, after }] : [];
    })
    .toSorted((one, other) => rank(one.field) - rank(other.field))[0];
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === "";
}

function ShortValue({ meta, field, value }: { meta: Meta; field: Field; value: unknown }): ComponentChildren {
  switch (field.kind) {
    case "money":
      return formatWholeAmount(Number(value), field.currency);
    case "select":
      return optionLabel(field, String(value));
    case "date":
      return isThisYear(value) ? shortDate(String(value)) : date(String(value));
    case "bool":
      return tCommon(value ? "yes" : "no");
    case "ref":
      return <RefTitle model={modelOf(meta, field.ref ?? "")} id={String(value)} />;
    default:
      return number(Number(value));
  }
}

function isThisYear(day: unknown): boolean {
  return String(day).startsWith(`${new Date().getFullYear()}-`);
}

function RefTitle({ model, id }: { model: Model | undefined; id: string }) {
  const record = model && referencedRecord(model, id).value;
  return <UntrustedText text={model && record ? titleOf(model, record) : id.slice(0, 8)} />;
}
