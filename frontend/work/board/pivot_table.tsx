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

const MOST = 12;

/** The fields with few known values, which can be the columns. */
export function pivotFields(model: Model, field: Field): Field[] {
  const few = (each: Field) => each.kind === "bool" || (each.kind === "select" && (each.options?.length ?? 0) < MOST);
  return model.fields.filter((each) => each !== field && !each.masked && few(each));
}

/** Represents an empty field. */
const NONE = null;

function options(field: Field): unknown[] {
  return field.kind === "bool" ? [true, false, NONE] : [...(field.options ?? []), NONE];
}

function condition(field: Field, value: unknown) {
  return value === NONE ? { field: field.name, op: "is_null", value: true } : { field: field.name, op: "eq", value };
}

/** The rows of the table, without values that no record has. */
function lines(groups: readonly Group[][]): Line[] {
  const found = new Map<string, Line>();
  groups.forEach((several, place) =>
    several.forEach(({ value, count }) => {
      const key = JSON.stringify(value);
      const line = found.get(key) ?? { value, counts: groups.map(() => 0) };
      line.counts[place] = count;
      found.set(key, line);
    }),
  );
  return [...found.values()];
}

export function PivotTable({ meta, model, field, by }: { meta: Meta; model: Model; field: Field; by: Field }) {
  const all = options(by);
  const found = useRequest(
    (signal) =>
      Promise.all(
        all.map(async (option) => {
          const input = { field: field.name, filter: [condition(by, option)] };
          return (await run<Group[]>(model.name, "count_by", input, signal)).value;
        }),
      ),
    [model.name, field.name, by.name],
  );
  const address = (line: Line, option: unknown) =>
    `/models/${model.name}?filter=${encodeURIComponent(JSON.stringify([condition(field, line.value), condition(by, option)]))}`;
  const named = (option: unknown) =>
    option === NONE ? t("nothing") : by.kind === "bool" ? tCommon(option ? "yes" : "no") : optionLabel(by, String(option));
  const column = (option: unknown, place: number): Column<Line> => ({
    name: String(option),
    label: named(option),
    isNumber: true,
    cell: (line) => (line.counts[place] ? <a href={address(line, option)}>{number(line.counts[place] ?? 0)}</a> : number(0)),
  });
  const sum = (counts: readonly number[]) => counts.reduce((all, each) => all + each, 0);
  return (
    <RequestResult of={found}>
      {(groups) => {
        const rows = lines(groups);
        const used = all.map((option, place) => ({ option, place })).filter(({ place }) => rows.some((each) => each.counts[place]));
        return (
          <Table
            caption={t("pivot", { model: model.plural, field: field.label, by: by.label })}
            rows={rows}
            keyOf={(each) => JSON.stringify(each.value)}
            columns={[
              {
                name: "value",
                label: field.label,
                cell: ({ value }) => (value === null ? <span class="quiet">{t("nothing")}</span> : <Value meta={meta} field={field} value={value} />),
              },
              ...used.map(({ option, place }) => column(option, place)),
              { name: "sum", label: t("sum"), isNumber: true, cell: ({ counts }) => number(sum(counts)) },
            ]}
          />
        );
      }}
    </RequestResult>
  );
}
