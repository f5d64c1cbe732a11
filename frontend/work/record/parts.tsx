// The records of a model that refer to another one, such as the lines of an invoice: shown on its page, and added there.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { number, shortDate, translator } from "../../shared/i18n";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { addressOf, may, nounOf, titleOf, defaultColumns } from "../models";
import { isNarrow } from "../narrow";
import { cacheRecords } from "../referenced_records";
import { Value } from "../values/value";
import { EditForm } from "./edit_form";
import { ProposedNotice } from "./proposed_notice";

const t = translator("record");

const SHOWN = 50;
const COLUMNS = 7;

interface Props {
  meta: Meta;
  model: Model;
  record: Row;
  /** Called after a part was added, because computed fields of the record change too. */
  onChanged: () => void;
}

export function Part({ meta, model, by, record, onChanged }: Props & { by: Field }) {
  const [added, setAdded] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const [planId, setPlanId] = useState<string | null>(null);
  const filter = [{ field: by.name, op: "eq", value: record.id }];
  const found = useRequest((signal) => rowsOf(model, filter, signal), [model.name, record.id, record.revision, added], { keepsPrevious: true });
  const heading = `part-${model.name}-${by.name}`;
  const saved = (row: Row) => {
    cacheRecords(model, [row]);
    showToast(t("part.added", { model: model.label }));
    setAdded((last) => last + 1);
    onChanged();
  };
  return (
    <div class="stack tight part">
      <RequestResult of={found}>
        {(rows) => (
          <>
            {rows.length === 0 && <p class="quiet">{t("part.none")}</p>}
            {rows.length > 0 && <Table caption={captionOf(model, rows.length)} columns={columnsOf(meta, model, by)} rows={rows.slice(0, SHOWN)} keyOf={(row) => row.id} />}
            {rows.length > SHOWN && (
              <p>
                <a href={`/models/${model.name}?filter=${encodeURIComponent(JSON.stringify(filter))}`}>
                  {t("part.all", { n: number(SHOWN) })}
                </a>
              </p>
            )}
          </>
        )}
      </RequestResult>
      {planId && <ProposedNotice planId={planId} />}
      {may(model, "create") && !by.readonly && (
        <div class="row">
          <Button tight aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Icon name="plus" size="s" />
            {t("part.add", { model: nounOf(model.label) })}
          </Button>
        </div>
      )}
      {isOpen && (
        <div class="panel-box">
          <EditForm
            key={added}
            {...{ meta, model, base: null }}
            prefix={`${heading}-`}
            given={{ [by.name]: record.id }}
            hasFocus
            onSaved={saved}
            onProposed={(plan) => (setPlanId(plan), setOpen(false))}
          />
        </div>
      )}
    </div>
  );
}

function captionOf(model: Model, count: number): string {
  return `${model.plural} (${number(Math.min(count, SHOWN))}${count > SHOWN ? "+" : ""})`;
}

/** The first parts, one more than is shown if there are more. */
async function rowsOf(model: Model, filter: readonly object[], signal: AbortSignal): Promise<Row[]> {
  const asked = { filter, limit: SHOWN + 1 };
  return may(model, "list")
    ? (await run<Row[]>(model.name, "list", asked, signal)).value
    : (await run<{ rows: Row[] }>(model.name, "search", asked, signal)).value.rows;
}

/** The fields of a part that fit in a line, without its ref to the record. */
export function columnsOf(meta: Meta, model: Model, by: Field) {
  const fields = defaultColumns(model, COLUMNS + 1).filter((field) => field.name !== by.name);
  return fields.slice(0, COLUMNS).map((field, place) => ({
    name: field.name,
    label: field.label,
    isNumber: ["number", "money"].includes(field.kind) && !field.masked,
    cell: (row: Row) => {
      const value = cellOf(meta, field, row[field.name]);
      const leads = place === 0 && field.kind !== "ref" && may(model, "get");
      return leads ? <a href={addressOf(model.name, row.id)}>{row[field.name] ? value : titleOf(model, row)}</a> : value;
    },
  }));
}

/** The value in a table. A date stays on one line, and is short on a phone. */
function cellOf(meta: Meta, field: Field, value: unknown) {
  const isDay = field.kind === "date" && !field.masked && value;
  const shown = isDay && isNarrow.value ? shortDate(String(value)) : <Value meta={meta} field={field} value={value} isCell />;
  return isDay ? <span class="day">{shown}</span> : shown;
}
