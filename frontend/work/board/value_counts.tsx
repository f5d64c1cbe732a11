// The number of records for each value of a field: as bars that link to those records, or as a table.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { number, translator } from "../../shared/i18n";
import { type Field, type Meta, type Model, run } from "../api";
import { fieldOf } from "../models";
import { Value } from "../values/value";
import { PartBar } from "../dashboard/tiles";
import { pivotFields, PivotTable } from "./pivot_table";
import "./figures.css";

const t = translator("board");

interface Group {
  value: unknown;
  count: number;
}

const MAX_SHOWN = 12;

interface Props {
  meta: Meta;
  model: Model;
  fields: readonly Field[];
  /** The initial field to count by, split by the state. If undefined, the first field is used, without a split. */
  start?: Field | undefined;
}

export function ValueCounts({ meta, model, fields, start }: Props) {
  const [name, setName] = useState((start ?? fields[0])?.name ?? "");
  const [isTable, setTable] = useState(false);
  const [columnName, setColumnName] = useState((start && model.state_field) || "");
  const field = fieldOf(model, name);
  const countsRequest = useRequest(
    async (signal) => (await run<Group[]>(model.name, "count_by", { field: name }, signal)).value,
    [model.name, name],
    { keepsPrevious: true },
  );
  if (!field) {
    return null;
  }
  const columns = pivotFields(model, field);
  const columnField = columns.find((column) => column.name === columnName);
  const title = t("figures", { model: model.plural, field: field.label });
  return (
    <div class="figure stack" role="group" aria-labelledby={`figure-${model.name}`}>
      <div class="row between">
        <h2 id={`figure-${model.name}`}>{title}</h2>
        <Button tight aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {t("table")}
        </Button>
      </div>
      <SelectField
        name={`by-${model.name}`}
        label={t("field")}
        value={name}
        onChange={setName}
        options={fields.map((field) => [field.name, field.label])}
      />
      {columns.length > 0 && (
        <SelectField
          name={`across-${model.name}`}
          label={t("across")}
          value={columnField?.name ?? ""}
          onChange={setColumnName}
          options={[["", t("across.none")], ...columns.map((column) => [column.name, column.label] as const)]}
        />
      )}
      {columnField ? (
        <PivotTable key={`${name}/${columnField.name}`} {...{ meta, model, field, by: columnField }} />
      ) : (
        <RequestResult request={countsRequest}>
          {(groups) => {
            const largest = [...groups].sort((a, b) => b.count - a.count).slice(0, MAX_SHOWN);
            const shownGroups = groups.length > MAX_SHOWN ? largest : groups;
            return isTable ? (
              <Table
                caption={title}
                rows={groups}
                keyOf={(group) => String(group.value)}
                columns={[
                  { name: "value", label: t("value"), cell: (group) => <ValueName {...{ meta, field, value: group.value }} /> },
                  { name: "count", label: t("number"), cell: (group) => number(group.count), isNumber: true },
                ]}
              />
            ) : (
              <Bars {...{ meta, model, field, groups: shownGroups }} />
            );
          }}
        </RequestResult>
      )}
    </div>
  );
}

function ValueName({ meta, field, value }: { meta: Meta; field: Field; value: unknown }) {
  return value === null ? <span class="quiet">{t("nothing")}</span> : <Value meta={meta} field={field} value={value} />;
}

function Bars({ meta, model, field, groups }: { meta: Meta; model: Model; field: Field; groups: readonly Group[] }) {
  const maxCount = Math.max(1, ...groups.map((group) => group.count));
  const address = (value: unknown) => {
    const condition = value === null ? { field: field.name, op: "is_null", value: true } : { field: field.name, op: "eq", value };
    return `/models/${model.name}?filter=${encodeURIComponent(JSON.stringify([condition]))}`;
  };
  return (
    <ul class="bars">
      {groups.map((group) => (
        <li key={String(group.value)}>
          <span class="bar-name">
            <ValueName meta={meta} field={field} value={group.value} />
          </span>
          <PartBar part={group.count / maxCount} />
          <a class="bar-count" href={address(group.value)} aria-label={`${String(group.value ?? t("nothing"))}: ${number(group.count)}`}>
            {number(group.count)}
          </a>
        </li>
      ))}
    </ul>
  );
}
