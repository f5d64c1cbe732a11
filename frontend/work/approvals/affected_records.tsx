// The records that a pending plan affects, as they are now, with their parts.
import { useRequest } from "../../shared/request";
import { RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { number, translator } from "../../shared/i18n";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { canList, fieldOf, mayRun, modelOf, partsOf } from "../models";
import { columnsOf } from "../record/child_records";
import { Value } from "../values/value";
import { RecordTitle } from "./record_title";
import { isStale, type Plan } from "./plan";
import { isDeletion } from "./risk";

const t = translator("approvals");

const MAX_RECORDS = 10;
const MAX_PARTS = 20;

interface AffectedRecord {
  model: Model;
  id: string;
  /** Whether the plan only adds a part to the record, and changes nothing else of it. */
  isPartAdded: boolean;
}

export function AffectedRecords({ meta, plan }: { meta: Meta; plan: Plan }) {
  const records = affectedRecordsOf(meta, plan);
  // The first record is shown beside the proposal, unless it has parts.
  const shownRecords = records.filter(({ model }, index) => index > 0 || areAllFieldsShown(meta, plan, model));
  if (plan.state !== "pending" || shownRecords.length === 0) {
    return null;
  }
  return (
    <section class="stack tight subjects">
      <h3>{t("now")}</h3>
      {shownRecords.slice(0, MAX_RECORDS).map((record) => (
        <CurrentRecord key={`${record.model.name}/${record.id}`} {...{ meta, plan, affected: record }} />
      ))}
      {shownRecords.length > MAX_RECORDS && <p class="quiet">{t("now.more", { n: number(shownRecords.length - MAX_RECORDS) })}</p>}
      {shownRecords.some((shownRecord) => !shownRecord.isPartAdded) && <p class="small quiet">{t("now.bound")}</p>}
    </section>
  );
}

/** Whether the values of the record are shown above the changes: if the plan moves a record that has parts. */
export function areAllFieldsShown(meta: Meta, plan: Plan, model: Model): boolean {
  return partsOf(meta, model).length > 0 && !isDeletion(plan) && !plan.command.endsWith(".update");
}

/** The existing records that the plan changes, then those to which it adds parts. */
export function affectedRecordsOf(meta: Meta, plan: Plan): AffectedRecord[] {
  const records = new Map<string, AffectedRecord>();
  const add = (name: string, id: unknown, isPartAdded: boolean) => {
    const model = modelOf(meta, name);
    if (model && typeof id === "string" && id && (canList(model) || mayRun(model, "get")) && !records.has(`${name}/${id}`)) {
      records.set(`${name}/${id}`, { model, id, isPartAdded });
    }
  };
  const isCreated = (key: string) => plan.diff.every((change) => `${change.model}/${change.id}` !== key || change.before === null);
  add(plan.target?.model ?? "", plan.command.endsWith(".create") ? null : plan.target?.id, false);
  for (const { model, id } of plan.diff) {
    if (!isCreated(`${model}/${id}`)) {
      add(model, id, false);
    }
  }
  for (const { model, field, after } of plan.diff) {
    const knownField = fieldOf(modelOf(meta, model), field);
    if (knownField?.is_part && knownField.ref) {
      add(knownField.ref, after, true);
    }
  }
  return [...records.values()];
}

function CurrentRecord({ meta, plan, affected }: { meta: Meta; plan: Plan; affected: AffectedRecord }) {
  const { model, id } = affected;
  const recordRequest = useRequest((signal) => loadRecord(model, id, signal), [model.name, id, plan.id, isStale(plan)], { keepsPrevious: true });
  return (
    <div class="stack tight subject">
      <h4>
        <RecordTitle model={model} recordRef={{ model: model.name, id }} />
      </h4>
      <RequestResult request={recordRequest}>
        {(record) =>
          record ? (
            <>
              <RecordFields {...{ meta, model, record }} />
              {partsOf(meta, model).map(([partModel, parentField]) => (
                <PartTable key={`${partModel.name}.${parentField.name}`} {...{ meta, model: partModel, parentField, record }} />
              ))}
            </>
          ) : (
            <p class="quiet">{t("now.gone")}</p>
          )
        }
      </RequestResult>
    </div>
  );
}

interface RecordFieldsProps {
  meta: Meta;
  model: Model;
  record: Row;
  /** The fields that are named elsewhere. */
  omittedFields?: ReadonlySet<string>;
  maxFields?: number;
}

export function RecordFields({ meta, model, record, omittedFields, maxFields }: RecordFieldsProps) {
  const isShown = ({ name }: Field) => !omittedFields?.has(name) && record[name] !== null && record[name] !== undefined && record[name] !== "";
  const shownFields = model.fields.filter(isShown).slice(0, maxFields);
  return (
    <dl class="facts">
      {shownFields.map((field) => (
        <div key={field.name} class="fact">
          <dt>{field.label}</dt>
          <dd>
            <Value meta={meta} field={field} value={record[field.name]} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function PartTable({ meta, model, parentField, record }: { meta: Meta; model: Model; parentField: Field; record: Row }) {
  const filter = [{ field: parentField.name, op: "eq", value: record.id }];
  const partsRequest = useRequest((signal) => loadParts(model, filter, signal), [model.name, record.id, record.revision], { keepsPrevious: true });
  return (
    <RequestResult request={partsRequest}>
      {({ rows, total }) =>
        rows.length === 0 ? (
          <p class="quiet">{t("now.none", { model: model.plural })}</p>
        ) : (
          <>
            <Table
              caption={`${model.plural} (${number(total)})`}
              columns={columnsOf(meta, model, parentField)}
              rows={rows}
              keyOf={(row) => row.id}
            />
            {total > rows.length && (
              <p>
                <a href={`/models/${model.name}?filter=${encodeURIComponent(JSON.stringify(filter))}`}>
                  {t("now.parts", { n: number(rows.length), of: number(total) })}
                </a>
              </p>
            )}
          </>
        )
      }
    </RequestResult>
  );
}

/** The record as this person sees it, or null if it no longer exists. */
export async function loadRecord(model: Model, id: string, signal: AbortSignal): Promise<Row | null> {
  if (mayRun(model, "list")) {
    const filter = [{ field: "id", op: "eq", value: id }];
    return (await run<Row[]>(model.name, "list", { filter, limit: 1 }, signal)).value[0] ?? null;
  }
  return (await run<Row>(model.name, "get", { id }, signal)).value;
}

/** The first parts, and their number if this person may count them. */
async function loadParts(model: Model, filter: readonly object[], signal: AbortSignal): Promise<{ rows: Row[]; total: number }> {
  if (mayRun(model, "search")) {
    return (await run<{ rows: Row[]; total: number }>(model.name, "search", { filter, limit: MAX_PARTS }, signal)).value;
  }
  const rows = (await run<Row[]>(model.name, "list", { filter, limit: MAX_PARTS + 1 }, signal)).value;
  return { rows: rows.slice(0, MAX_PARTS), total: rows.length };
}
