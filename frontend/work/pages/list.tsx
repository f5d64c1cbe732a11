// The records of any model, page by page, in any order; what is masked shows as what it is.
import type { ComponentChildren } from "preact";
import { useAsked } from "../../shared/asked";
import { Chip, Masked } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { Pager } from "../../shared/components/pager";
import { Missing } from "../../shared/components/shell";
import { Answer, Empty } from "../../shared/components/states";
import { Table, type Order } from "../../shared/components/table";
import { ask, query } from "../../shared/router";
import { say as shared } from "../../shared/say";
import { date, number } from "../../shared/words";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { say } from "../say";

const PAGE = 50;
const COLUMNS = 7;

export function List({ meta, name }: { meta: Meta; name: string }) {
  const model = meta.models.find((each) => each.name === name);
  return model?.commands.includes(`${name}.search`) ? <Records model={model} /> : <Missing />;
}

function Records({ model }: { model: Model }) {
  const offset = Number(query.value.get("offset") ?? 0) || 0;
  const order = ordered(query.value.get("order"));
  const found = useAsked(
    async (signal) => {
      const input = { limit: PAGE, offset, ...(order ? { order: [order] } : {}) };
      return await run<{ rows: Row[]; total: number }>(model.name, "search", input, signal);
    },
    [model.name, offset, order?.field, order?.dir],
    { keeps: true },
  );
  const fields = columns(model);
  return (
    <>
      <Heading title={model.plural} />
      <Answer of={found}>
        {({ value }) =>
          value.total === 0 ? (
            <Empty title={say("none")} />
          ) : (
            <>
              <Table
                caption={say("records", { model: model.plural })}
                rows={value.rows}
                keyOf={(row) => row.id}
                order={order}
                onOrder={(next) => ask({ order: next.dir === "desc" ? `-${next.field}` : next.field, offset: "" })}
                columns={fields.map((field) => ({
                  name: field.name,
                  label: field.label,
                  cell: (row: Row) => <Value field={field} value={row[field.name]} />,
                  isNumber: ["number", "money"].includes(field.kind) && !field.masked,
                  canSort: !field.masked,
                }))}
              />
              <Pager
                offset={offset}
                limit={PAGE}
                total={value.total}
                onGo={(next) => ask({ offset: next ? String(next) : "" }, { replaces: false })}
              />
            </>
          )
        }
      </Answer>
    </>
  );
}

function ordered(said: string | null): Order | null {
  if (!said) {
    return null;
  }
  return said.startsWith("-") ? { field: said.slice(1), dir: "desc" } : { field: said, dir: "asc" };
}

/** The field that names a record first, then the others that fit in a line. */
function columns(model: Model): Field[] {
  const short = model.fields.filter((each) => each.kind !== "longtext");
  const named = short.filter((each) => each.name === model.shown_as);
  return [...named, ...short.filter((each) => each.name !== model.shown_as)].slice(0, COLUMNS);
}

function Value({ field, value }: { field: Field; value: unknown }): ComponentChildren {
  if (value === null || value === undefined) {
    return <span class="quiet">–</span>;
  }
  const text = String(value);
  if (field.masked) {
    return <Masked token={text} label={field.label} />;
  }
  switch (field.kind) {
    case "bool":
      return shared(value ? "yes" : "no");
    case "date":
      return date(text);
    case "number":
      return number(Number(value));
    case "select":
      return <Chip>{text}</Chip>;
    default:
      return text;
  }
}
