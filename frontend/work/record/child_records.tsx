// The records of a model that refer to another record, such as the lines of an invoice. They are shown and added on
// its page.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button, LinkButton } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { Chip } from "../../shared/components/chip";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { number, shortDate, translator } from "../../shared/i18n";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { addressOf, mayRun, nounOf, titleOf, defaultColumns, workflowField } from "../models";
import { daysUntil, dueField, openStates, today } from "../home/own_records";
import { defaultOrder } from "../list/query";
import { isNarrow } from "../screen_size";
import { cacheRecords } from "../referenced_records";
import { optionLabel } from "../values/options";
import { Value } from "../values/value";
import { EditForm } from "./edit_form";
import { ProposedNotice } from "./proposed_notice";

const t = translator("record");

const MAX_ROWS = 50;
const MAX_COLUMNS = 7;

/** Records of a model that refer to the record of the page, or to a record to which that record refers. */
export interface Relation {
  name: string;
  label: string;
  model: Model;
  /** The ref to the record. */
  field: Field;
  /** The model and the id of the record. */
  to: Model;
  id: string;
  /** The id of the page's own record, if it is one of these records. */
  exceptId: string | null;
}

interface Props {
  meta: Meta;
  relation: Relation;
  /** The revision of the page's record. A new revision loads the related records again. */
  revision: number;
  /** Called after a part was added, because computed fields of the record change too. */
  onChanged: () => void;
}

/** The conditions that select the records. */
export function filterOf({ field, id, exceptId }: Relation): object[] {
  return [{ field: field.name, op: "eq", value: id }, ...(exceptId ? [{ field: "id", op: "ne", value: exceptId }] : [])];
}

export function RelatedRecords({ meta, relation, revision, onChanged }: Props) {
  const { model, field: parentField, id } = relation;
  const [addedCount, setAddedCount] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const [planId, setPlanId] = useState<string | null>(null);
  const filter = filterOf(relation);
  const rowsRequest = useRequest((signal) => rowsOf(model, filter, signal), [relation.name, id, revision, addedCount], { keepsPrevious: true });
  const heading = `part-${model.name}-${parentField.name}`;
  const listAddress = `/models/${model.name}?filter=${encodeURIComponent(JSON.stringify(filter))}`;
  const rowCount = rowsRequest.state === "loaded" ? rowsRequest.value.length : 0;
  const handleSaved = (row: Row) => {
    cacheRecords(model, [row]);
    showToast(t("part.added", { model: model.label }));
    setAddedCount((addedBefore) => addedBefore + 1);
    onChanged();
  };
  return (
    <div class="stack tight part">
      <RequestResult request={rowsRequest}>
        {(rows) => (
          <>
            {rows.length === 0 && <p class="quiet">{t("part.none")}</p>}
            {rows.length > 0 && <Table caption={captionOf(model, rows.length)} columns={columnsOf(meta, model, parentField)} rows={rows.slice(0, MAX_ROWS)} keyOf={(row) => row.id} />}
            {rows.length > MAX_ROWS && (
              <p>
                <a href={listAddress}>{t("part.all", { n: number(MAX_ROWS) })}</a>
              </p>
            )}
          </>
        )}
      </RequestResult>
      {planId && <ProposedNotice planId={planId} />}
      <div class="row">
        {mayRun(model, "create") && !parentField.readonly && (
          <Button tight aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Icon name="plus" size="s" />
            {t("part.add", { model: nounOf(model.label) })}
          </Button>
        )}
        {rowCount > 0 && rowCount <= MAX_ROWS && (
          <LinkButton tight variant="plain" href={listAddress}>
            {t("part.open")}
          </LinkButton>
        )}
      </div>
      {isOpen && (
        <div class="panel-box">
          <EditForm
            key={addedCount}
            {...{ meta, model, base: null }}
            prefix={`${heading}-`}
            fixedValues={{ [parentField.name]: id }}
            hasFocus
            onSaved={handleSaved}
            onProposed={(plan) => (setPlanId(plan), setOpen(false))}
          />
        </div>
      )}
    </div>
  );
}

function captionOf(model: Model, count: number): string {
  return `${model.plural} (${number(Math.min(count, MAX_ROWS))}${count > MAX_ROWS ? "+" : ""})`;
}

/** The first parts, one more than is shown if there are more. */
async function rowsOf(model: Model, filter: readonly object[], signal: AbortSignal): Promise<Row[]> {
  const input = { filter, order: defaultOrder(model), limit: MAX_ROWS + 1 };
  return mayRun(model, "list")
    ? (await run<Row[]>(model.name, "list", input, signal)).value
    : (await run<{ rows: Row[] }>(model.name, "search", input, signal)).value.rows;
}

/** The fields of a part that fit in a line, without its ref to the record. */
export function columnsOf(meta: Meta, model: Model, parentField: Field) {
  const fields = defaultColumns(model, MAX_COLUMNS + 1).filter((field) => field.name !== parentField.name);
  return fields.slice(0, MAX_COLUMNS).map((field, index) => ({
    name: field.name,
    label: field.label,
    isNumber: ["number", "money", "decimal"].includes(field.kind) && !field.masked,
    cell: (row: Row) => {
      const days = field === workflowField(model) ? daysLeft(model, row) : null;
      const value = days !== null && days <= 0 ? <DueChip state={optionLabel(field, String(row[field.name]))} days={days} /> : cellOf(meta, model, field, row[field.name]);
      const isLinked = index === 0 && field.kind !== "ref" && mayRun(model, "get");
      return isLinked ? <a href={addressOf(model.name, row.id)}>{row[field.name] ? value : titleOf(model, row)}</a> : value;
    },
  }));
}

/** The number of days until an open record is due; null if it is closed or has no due date. */
function daysLeft(model: Model, row: Row): number | null {
  const [state, dueDateField] = [workflowField(model), dueField(model)];
  const isRecordOpen = state !== undefined && openStates(state).includes(String(row[state.name]));
  return isRecordOpen && dueDateField && row[dueDateField.name] ? daysUntil(String(row[dueDateField.name]), today()) : null;
}

/** The chip that replaces the state of an open record that is due today or overdue. */
function DueChip({ state, days }: { state: string; days: number }) {
  return (
    <span title={state}>
      <Chip tone={days === 0 ? "warn" : "bad"}>{t(days === 0 ? "due.today" : "due.past")}</Chip>
    </span>
  );
}

/** The value in a table. A date stays on one line, and is short on a phone. Only the state is a chip. */
function cellOf(meta: Meta, model: Model, field: Field, value: unknown) {
  if (field.kind === "select" && !field.masked && value && workflowField(model) !== field) {
    return optionLabel(field, String(value));
  }
  const isDay = field.kind === "date" && !field.masked && value;
  const shownValue = isDay && isNarrow.value ? shortDate(String(value)) : <Value meta={meta} field={field} value={value} isCell />;
  return isDay ? <span class="day">{shownValue}</span> : shownValue;
}
