// The title of the record of a plan: its present title, or else the title in the plan.
import { MaskedValue } from "../../shared/components/chip";
import { escapeInvisible } from "../../shared/invisible_characters";
import { number, translator } from "../../shared/i18n";
import type { Meta, Model, Row } from "../api";
import { fieldOf, modelOf, titleOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { formatAmount } from "../values/money";
import { ChangeSummary } from "./change_summary";
import { plans } from "./live_plans";
import type { Difference, Plan } from "./plan";

const t = translator("approvals");

interface TitleProps {
  model: Model | undefined;
  recordRef: Pick<Difference, "model" | "id">;
  /** Whether to omit the model, because it is shown beside the title. */
  isBare?: boolean;
}

export function RecordTitle({ model, recordRef, isBare = false }: TitleProps) {
  if (!model) {
    return <>{t("step", { model: recordRef.model, id: recordRef.id.slice(0, 8) })}</>;
  }
  const record: Row = referencedRecord(model, recordRef.id).value ?? { revision: 0, [model.shown_as]: plannedTitleOf(model, recordRef.id), id: recordRef.id };
  const field = fieldOf(model, model.shown_as);
  const storedTitle = record[model.shown_as];
  if (field?.masked && storedTitle) {
    return (
      <>
        {!isBare && `${model.label} `}
        <MaskedValue token={String(storedTitle)} label={field.label} />
      </>
    );
  }
  const title = titleOf(model, record);
  // A record without a title is already called by its model.
  return <bdi>{storedTitle && !isBare ? t("step", { model: model.label, id: title }) : title}</bdi>;
}

/** A plan in one line: its first changed record with the most telling change, or its new record with the amount and the record that it
 *  belongs to; then the number of further records. */
export function PlanSummary({ meta, plan }: { meta: Meta; plan: Plan }) {
  const { model, id } = targetOf(plan);
  const knownModel = modelOf(meta, model);
  if (!model) {
    return null;
  }
  const otherCount = new Set(plan.diff.map((change) => `${change.model}/${change.id}`)).size - 1;
  const ownChanges = plan.diff.filter((change) => change.model === model && change.id === id);
  const isDeleted = ownChanges.every((ownChange) => ownChange.after === null);
  const isNew = isCreation(plan);
  return (
    <>
      <span class="about-record">
        {isNew || !id ? <NewRecordTitle {...{ meta, model: knownModel, name: model, changes: ownChanges }} /> : <ExistingRecordTitle {...{ meta, model: knownModel, recordRef: { model, id } }} />}
      </span>
      {!isNew && id && !isDeleted && <ChangeSummary {...{ meta, model: knownModel, changes: ownChanges }} />}
      {otherCount > 0 && ` ${t("others", { n: number(otherCount) })}`}
    </>
  );
}

/** The first record that a plan changes. */
export function targetOf(plan: Plan): { model: string; id: string } {
  const { model = "", id = "" } = plan.diff[0] ?? plan.target ?? {};
  return { model, id };
}

/** Whether the plan creates its first record. */
export function isCreation(plan: Plan): boolean {
  const { model, id } = targetOf(plan);
  const ownChanges = plan.diff.filter((change) => change.model === model && change.id === id);
  return ownChanges.length > 0 && ownChanges.every((ownChange) => ownChange.before === null) && plan.target?.id !== id;
}

/** A new record: its amount, and the record that it is a part of or refers to first; without those, its title. */
export function NewRecordTitle({ meta, model, name, changes }: { meta: Meta; model: Model | undefined; name: string; changes: readonly Difference[] }) {
  const knownValues = changes.flatMap(({ field, after }) => {
    const knownField = fieldOf(model, field);
    return knownField && !knownField.masked && after !== null && after !== undefined && after !== "" ? [{ field: knownField, value: after }] : [];
  });
  const refs = knownValues.filter(({ field }) => field.kind === "ref");
  const ref = refs.find(({ field }) => field.is_part) ?? refs[0];
  const amount = knownValues.find(({ field, value }) => field.kind === "money" && typeof value === "number");
  const title = knownValues.find(({ field }) => field.name === model?.shown_as && field.kind !== "ref");
  return (
    <>
      {t("step.new", { model: model?.label ?? name })}
      {title && <bdi> {escapeInvisible(String(title.value))}</bdi>}
      {amount && ` ${t("of", { amount: formatAmount(Number(amount.value), amount.field.currency) })}`}
      {ref && (
        <>
          {` ${t("for")} `}
          <RecordTitle model={modelOf(meta, ref.field.ref ?? "")} recordRef={{ model: ref.field.ref ?? "", id: String(ref.value) }} />
        </>
      )}
    </>
  );
}

/** An existing record. If it has no title, the record that it refers to first is shown. */
function ExistingRecordTitle({ meta, model, recordRef }: { meta: Meta; model: Model | undefined; recordRef: Pick<Difference, "model" | "id"> }) {
  const record = model && referencedRecord(model, recordRef.id).value;
  const ref = record && !record[model.shown_as] ? model.fields.find((field) => field.kind === "ref" && record[field.name]) : undefined;
  return (
    <>
      <RecordTitle {...{ model, recordRef }} isBare />
      {ref && record && (
        <>
          {` ${t("for")} `}
          <RecordTitle model={modelOf(meta, ref.ref ?? "")} recordRef={{ model: ref.ref ?? "", id: String(record[ref.name]) }} />
        </>
      )}
    </>
  );
}

/** The title of a record that may no longer exist: the plan that deletes it contains the title. */
function plannedTitleOf(model: Model, id: string): unknown {
  const differences = (plans.value ?? []).flatMap((plan) => plan.diff);
  return differences.find((difference) => difference.model === model.name && difference.id === id && difference.field === model.shown_as)?.before;
}
