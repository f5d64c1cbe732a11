// A table that counts the records for each pair of values of two fields, with totals.
import { useRequest } from "../../shared/request";
import { RequestResult } from "../../shared/components/states";
import { type Column, Table } from "../../shared/components/table";
import { number, translator } from "../../shared/i18n";
import { type Field, type Meta, type Model, run } from "../api";
import { optionLabel } from "../values/options";
import { Value } from "../values/value";

const tCommon = translator("common");
const t = translator("board");

interface Group {
  value: unknown;
  count: number;
}

interface Line {
  value: unknown;
  counts: number[];
}

const MAX_OPTIONS = 12;

/** The fields with few known values, which can be the columns. */
export function pivotFields(model: Model, field: Field): Field[] {
  const hasFewOptions = (field: Field) => field.kind === "bool" || (field.kind === "select" && (field.options?.length ?? 0) < MAX_OPTIONS);
  return model.fields.filter((other) => other !== field && !other.masked && hasFewOptions(other));
}

/** Represents an empty field. */
const NO_VALUE = null;

function options(field: Field): unknown[] {
  return field.kind === "bool" ? [true, false, NO_VALUE] : [...(field.options ?? []), NO_VALUE];
}

function condition(field: Field, value: unknown) {
  return value === NO_VALUE ? { field: field.name, op: "is_null", value: true } : { field: field.name, op: "eq", value };
}

/** The rows of the table, without values that no record has. */
function lines(groups: readonly Group[][]): Line[] {
  const lineByKey = new Map<string, Line>();
  groups.forEach((columnGroups, index) =>
    columnGroups.forEach(({ value, count }) => {
      const key = JSON.stringify(value);
      const line = lineByKey.get(key) ?? { value, counts: groups.map(() => 0) };
      line.counts[index] = count;
      lineByKey.set(key, line);
    }),
  );
  return [...lineByKey.values()];
}

export function PivotTable({ meta, model, field, by }: { meta: Meta; model: Model; field: Field; by: Field }) {
  const columnOptions = options(by);
  const countsRequest = useRequest(
    (signal) =>
      Promise.all(
        columnOptions.map(async (option) => {
          const input = { field: field.name, filter: [condition(by, option)] };
          return (await run<Group[]>(model.name, "count_by", input, signal)).value;
        }),
      ),
    [model.name, field.name, by.name],
  );
  const address = (line: Line, option: unknown) =>
    `/models/${model.name}?filter=${encodeURIComponent(JSON.stringify([condition(field, line.value), condition(by, option)]))}`;
  const optionText = (option: unknown) =>
    option === NO_VALUE ? t("nothing") : by.kind === "bool" ? tCommon(option ? "yes" : "no") : optionLabel(by, String(option));
  const column = (option: unknown, index: number): Column<Line> => ({
    name: String(option),
    label: optionText(option),
    isNumber: true,
    cell: (line) => (line.counts[index] ? <a href={address(line, option)}>{number(line.counts[index] ?? 0)}</a> : number(0)),
  });
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  return (
    <RequestResult request={countsRequest}>
      {(groups) => {
        const rows = lines(groups);
        const usedColumns = columnOptions.map((option, index) => ({ option, place: index })).filter(({ place }) => rows.some((row) => row.counts[place]));
        return (
          <Table
            caption={t("pivot", { model: model.plural, field: field.label, by: by.label })}
            rows={rows}
            keyOf={(row) => JSON.stringify(row.value)}
            columns={[
              {
                name: "value",
                label: field.label,
                cell: ({ value }) => (value === null ? <span class="quiet">{t("nothing")}</span> : <Value meta={meta} field={field} value={value} />),
              },
              ...usedColumns.map(({ option, place }) => column(option, place)),
              { name: "sum", label: t("sum"), isNumber: true, cell: ({ counts }) => number(sum(counts)) },
            ]}
          />
        );
      }}
    </RequestResult>
  );
}
