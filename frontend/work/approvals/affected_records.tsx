// The records that a pending plan affects, as they are now, with their parts.
import { useRequest } from "../../shared/request";
import { RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { number, translator } from "../../shared/i18n";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { canList, fieldOf, may, modelOf, partsOf } from "../models";
import { columnsOf } from "../record/parts";
import { Value } from "../values/value";
import { RecordTitle } from "./record_title";
import { isStale, type Plan } from "./plan";
import { isDeletion } from "./risk";

const t = translator("approvals");

const RECORDS = 10;
const PARTS = 20;

interface Subject {
  model: Model;
  id: string;
  /** Whether the plan only adds a part to the record, and changes nothing else of it. */
  isWhole: boolean;
}

export function AffectedRecords({ meta, plan }: { meta: Meta; plan: Plan }) {
  const all = subjectsOf(meta, plan);
  // The first record is shown beside the proposal, unless it has parts.
  const found = all.filter(({ model }, place) => place > 0 || isShownWhole(meta, plan, model));
  if (plan.state !== "pending" || found.length === 0) {
    return null;
  }
  return (
    <section class="stack tight subjects">
      <h3>{t("now")}</h3>
      {found.slice(0, RECORDS).map((each) => (
        <Shown key={`${each.model.name}/${each.id}`} {...{ meta, plan, subject: each }} />
      ))}
      {found.length > RECORDS && <p class="quiet">{t("now.more", { n: number(found.length - RECORDS) })}</p>}
      {found.some((each) => !each.isWhole) && <p class="small quiet">{t("now.bound")}</p>}
    </section>
  );
}

/** Whether the values of the record are shown above the changes: if the plan moves a record that has parts. */
export function isShownWhole(meta: Meta, plan: Plan, model: Model): boolean {
  return partsOf(meta, model).length > 0 && !isDeletion(plan) && !plan.command.endsWith(".update");
}

/** The existing records that the plan changes, then those to which it adds parts. */
export function subjectsOf(meta: Meta, plan: Plan): Subject[] {
  const found = new Map<string, Subject>();
  const add = (name: string, id: unknown, isWhole: boolean) => {
    const model = modelOf(meta, name);
    if (model && typeof id === "string" && id && (canList(model) || may(model, "get")) && !found.has(`${name}/${id}`)) {
      found.set(`${name}/${id}`, { model, id, isWhole });
    }
  };
  const isMade = (key: string) => plan.diff.every((each) => `${each.model}/${each.id}` !== key || each.before === null);
  add(plan.target?.model ?? "", plan.command.endsWith(".create") ? null : plan.target?.id, false);
  for (const { model, id } of plan.diff) {
    if (!isMade(`${model}/${id}`)) {
      add(model, id, false);
    }
  }
  for (const { model, field, after } of plan.diff) {
    const known = fieldOf(modelOf(meta, model), field);
    if (known?.is_part && known.ref) {
      add(known.ref, after, true);
    }
  }
  return [...found.values()];
}

function Shown({ meta, plan, subject }: { meta: Meta; plan: Plan; subject: Subject }) {
  const { model, id } = subject;
  const found = useRequest((signal) => recordOf(model, id, signal), [model.name, id, plan.id, isStale(plan)], { keepsPrevious: true });
  return (
    <div class="stack tight subject">
      <h4>
        <RecordTitle model={model} of={{ model: model.name, id }} />
      </h4>
      <RequestResult of={found}>
        {(record) =>
          record ? (
            <>
              <Facts {...{ meta, model, record }} />
              {partsOf(meta, model).map(([part, by]) => (
                <Part key={`${part.name}.${by.name}`} {...{ meta, model: part, by, record }} />
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

interface FactsProps {
  meta: Meta;
  model: Model;
  record: Row;
  /** The fields that are named elsewhere. */
  but?: ReadonlySet<string>;
  most?: number;
}

export function Facts({ meta, model, record, but, most }: FactsProps) {
  const isTold = ({ name }: Field) => !but?.has(name) && record[name] !== null && record[name] !== undefined && record[name] !== "";
  const told = model.fields.filter(isTold).slice(0, most);
  return (
    <dl class="facts">
      {told.map((field) => (
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

function Part({ meta, model, by, record }: { meta: Meta; model: Model; by: Field; record: Row }) {
  const filter = [{ field: by.name, op: "eq", value: record.id }];
  const found = useRequest((signal) => partsIn(model, filter, signal), [model.name, record.id, record.revision], { keepsPrevious: true });
  return (
    <RequestResult of={found}>
      {({ rows, total }) =>
        rows.length === 0 ? (
          <p class="quiet">{t("now.none", { model: model.plural })}</p>
        ) : (
          <>
            <Table
              caption={`${model.plural} (${number(total)})`}
              columns={columnsOf(meta, model, by)}
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
export async function recordOf(model: Model, id: string, signal: AbortSignal): Promise<Row | null> {
  if (may(model, "list")) {
    const filter = [{ field: "id", op: "eq", value: id }];
    return (await run<Row[]>(model.name, "list", { filter, limit: 1 }, signal)).value[0] ?? null;
  }
  return (await run<Row>(model.name, "get", { id }, signal)).value;
}

/** The first parts, and their number if this person may count them. */
async function partsIn(model: Model, filter: readonly object[], signal: AbortSignal): Promise<{ rows: Row[]; total: number }> {
  if (may(model, "search")) {
    return (await run<{ rows: Row[]; total: number }>(model.name, "search", { filter, limit: PARTS }, signal)).value;
  }
  const rows = (await run<Row[]>(model.name, "list", { filter, limit: PARTS + 1 }, signal)).value;
  return { rows: rows.slice(0, PARTS), total: rows.length };
}
