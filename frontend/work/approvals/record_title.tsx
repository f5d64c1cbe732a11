// The title of the record of a plan: its present title, or else the title in the plan.
import { MaskedValue } from "../../shared/components/chip";
import { escapeInvisible } from "../../shared/invisible_characters";
import { number, translator } from "../../shared/i18n";
import type { Meta, Model, Row } from "../api";
import { fieldOf, modelOf, titleOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { formatAmount } from "../values/money";
import { plans } from "./live_plans";
import type { Difference, Plan } from "./plan";

const t = translator("approvals");

interface TitleProps {
  model: Model | undefined;
  of: Pick<Difference, "model" | "id">;
  /** Whether to omit the model, because it is shown beside the title. */
  isBare?: boolean;
}

export function RecordTitle({ model, of, isBare = false }: TitleProps) {
  if (!model) {
    return <>{t("step", { model: of.model, id: of.id.slice(0, 8) })}</>;
  }
  const record: Row = referencedRecord(model, of.id).value ?? { revision: 0, [model.shown_as]: toldOf(model, of.id), id: of.id };
  const field = fieldOf(model, model.shown_as);
  const said = record[model.shown_as];
  if (field?.masked && said) {
    return (
      <>
        {!isBare && `${model.label} `}
        <MaskedValue token={String(said)} label={field.label} />
      </>
    );
  }
  const title = titleOf(model, record);
  // A record without a title is already called by its model.
  return <bdi>{said && !isBare ? t("step", { model: model.label, id: title }) : title}</bdi>;
}

const FIELDS = 3;

/** A plan in one line: its first changed record with the fields, or its new record with the amount and the record that it
 *  belongs to; then the number of further records. */
export function PlanSummary({ meta, plan }: { meta: Meta; plan: Plan }) {
  const { model, id } = targetOf(plan);
  const known = modelOf(meta, model);
  if (!model) {
    return null;
  }
  const others = new Set(plan.diff.map((each) => `${each.model}/${each.id}`)).size - 1;
  const own = plan.diff.filter((each) => each.model === model && each.id === id);
  const isGone = own.every((each) => each.after === null);
  const isNew = isMaking(plan);
  return (
    <>
      {isNew || !id ? <Made {...{ meta, model: known, name: model, own }} /> : <Kept {...{ meta, model: known, of: { model, id } }} />}
      {!isNew && id && !isGone && `: ${labelsOf(known, own)}`}
      {others > 0 && ` ${t("others", { n: number(others) })}`}
    </>
  );
}

/** The first record that a plan changes. */
export function targetOf(plan: Plan): { model: string; id: string } {
  const { model = "", id = "" } = plan.diff[0] ?? plan.target ?? {};
  return { model, id };
}

/** Whether the first record of the plan is a new one. */
export function isMaking(plan: Plan): boolean {
  const { model, id } = targetOf(plan);
  const own = plan.diff.filter((each) => each.model === model && each.id === id);
  return own.length > 0 && own.every((each) => each.before === null) && plan.target?.id !== id;
}

/** A new record: its amount, and the record that it is a part of or refers to first; without those, its title. */
export function Made({ meta, model, name, own }: { meta: Meta; model: Model | undefined; name: string; own: readonly Difference[] }) {
  const valued = own.flatMap(({ field, after }) => {
    const known = fieldOf(model, field);
    return known && !known.masked && after !== null && after !== undefined && after !== "" ? [{ field: known, value: after }] : [];
  });
  const refs = valued.filter(({ field }) => field.kind === "ref");
  const ref = refs.find(({ field }) => field.is_part) ?? refs[0];
  const amount = valued.find(({ field, value }) => field.kind === "money" && typeof value === "number");
  const called = valued.find(({ field }) => field.name === model?.shown_as && field.kind !== "ref");
  return (
    <>
      {t("step.new", { model: model?.label ?? name })}
      {called && <bdi> {escapeInvisible(String(called.value))}</bdi>}
      {amount && ` ${t("of", { amount: formatAmount(Number(amount.value), amount.field.currency) })}`}
      {ref && (
        <>
          {` ${t("for")} `}
          <RecordTitle model={modelOf(meta, ref.field.ref ?? "")} of={{ model: ref.field.ref ?? "", id: String(ref.value) }} />
        </>
      )}
    </>
  );
}

/** An existing record. If it has no title, the record that it refers to first is shown. */
function Kept({ meta, model, of }: { meta: Meta; model: Model | undefined; of: Pick<Difference, "model" | "id"> }) {
  const record = model && referencedRecord(model, of.id).value;
  const ref = record && !record[model.shown_as] ? model.fields.find((each) => each.kind === "ref" && record[each.name]) : undefined;
  return (
    <>
      <RecordTitle {...{ model, of }} isBare />
      {ref && record && (
        <>
          {` ${t("for")} `}
          <RecordTitle model={modelOf(meta, ref.ref ?? "")} of={{ model: ref.ref ?? "", id: String(record[ref.name]) }} />
        </>
      )}
    </>
  );
}

function labelsOf(model: Model | undefined, own: readonly Difference[]): string {
  const labels = own.map(({ field }) => fieldOf(model, field)?.label ?? field);
  const more = labels.length - FIELDS;
  return labels.slice(0, FIELDS).join(", ") + (more > 0 ? ` ${t("others", { n: number(more) })}` : "");
}

/** The title of a record that may no longer exist: the plan that deletes it contains the title. */
function toldOf(model: Model, id: string): unknown {
  const told = (plans.value ?? []).flatMap((plan) => plan.diff);
  return told.find((each) => each.model === model.name && each.id === id && each.field === model.shown_as)?.before;
}
