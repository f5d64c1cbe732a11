// The filter bar: conditions as tokens, and the editor with the operators that the API has for the field.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Field as Asking, SelectField } from "../../shared/components/field";
import { showToast } from "../../shared/toast";
import type { Field, Meta, Model } from "../api";
import { fieldOf, ID, modelOf, titleOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { Control } from "../values/control";
import { date, dateTime, translator } from "../../shared/i18n";
import { formatMoney } from "../values/money";
import { isStateField, optionLabel, StateChip } from "../values/options";
import { type Condition, operand, type Operator, operators } from "../values/operators";
import { valueToText } from "../values/field_text";
import { Popover } from "../popover";
import { setFilter } from "./query";

const t = translator("list");

interface BuilderProps {
  meta: Meta;
  model: Model;
  filter: readonly Condition[];
  /** The index of the edited condition, or null to add one. */
  place: number | null;
  /** The control that gets the focus. */
  first?: "field" | "op" | "value";
  onDone: () => void;
}

function FilterBuilder({ meta, model, filter, place, first = "field", onDone }: BuilderProps) {
  const box = useRef<HTMLFormElement>(null);
  const before = place === null ? undefined : filter[place];
  const fields = [...model.fields, ID].filter((each) => operators(each).length > 0);
  const [name, setName] = useState(before?.field ?? fields[0]?.name ?? "id");
  const field = fieldOf(model, name) ?? ID;
  const [said, setSaid] = useState<string>(before ? (before.op === "is_null" && before.value === false ? "is_null.not" : before.op) : "");
  const [text, setText] = useState(before ? textOf(field, before) : "");
  const known = operators(field).flatMap((each) => (each === "is_null" ? [each, "is_null.not"] : [each]));
  const op = known.includes(said) ? said : (known[0] ?? "eq");
  useEffect(() => {
    (box.current?.querySelector<HTMLElement>(`#filter-${first}`) ?? box.current?.querySelector("select"))?.focus();
  }, []);
  const choose = (next: string) => {
    setName(next);
    setText("");
  };
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    const operator = op.replace(".not", "") as Operator;
    const found = operand(field, operator, op === "is_null.not" ? "false" : text);
    if (found === null) {
      showToast(t("filter.fault", { label: field.label }));
      return;
    }
    const condition = { field: field.name, op: operator, value: found.value };
    setFilter(place === null ? [...filter, condition] : filter.map((each, other) => (other === place ? condition : each)));
    onDone();
  };
  return (
    <form class="stack tight" ref={box} onSubmit={add} aria-label={t("filter")}>
      <SelectField name="filter-field" label={t("filter.field")} value={name} onChange={choose} options={fields.map((each) => [each.name, each.label])} />
      <SelectField name="filter-op" label={t("filter.op")} value={op} onChange={setSaid} options={known.map((each) => [each, operatorLabel(field, each)])} />
      {!op.startsWith("is_null") && (
        <Asking name="filter-value" label={t("filter.value")}>
          {(given) => <Control meta={meta} field={op === "in" ? { ...field, kind: "longtext" } : field} text={text} given={given} onText={setText} />}
        </Asking>
      )}
      <Button type="submit" look="strong">
        {t("filter.apply")}
      </Button>
    </form>
  );
}

interface Props {
  meta: Meta;
  model: Model;
  filter: readonly Condition[];
  /** The index of the edited condition, "new", or null if none is edited. */
  edited: number | "new" | null;
  onEdit: (edited: number | "new" | null) => void;
}

export function FilterBar({ meta, model, filter, edited, onEdit }: Props) {
  const [first, setFirst] = useState<"field" | "op" | "value">("field");
  const close = () => onEdit(null);
  const open = (place: number, part: typeof first) => {
    setFirst(part);
    onEdit(edited === place ? null : place);
  };
  return (
    <>
      {filter.length > 0 && (
        <ul class="conditions" aria-label={t("filter")}>
          {filter.map((each, place) => (
            <li key={JSON.stringify(each)}>
              <Popover
                isOpen={edited === place}
                onClose={close}
                label={t("filter")}
                opener={<Token {...{ meta, model, condition: each }} isOpen={edited === place} onOpen={(part) => open(place, part)} onRemove={() => setFilter(filter.filter((_, other) => other !== place))} />}
              >
                <FilterBuilder {...{ meta, model, filter, place, first }} onDone={close} />
              </Popover>
            </li>
          ))}
        </ul>
      )}
      <Popover
        isOpen={edited === "new"}
        onClose={close}
        label={t("filter.add")}
        opener={
          <Button id="panel-filter" tight look="plain" aria-expanded={edited === "new"} onClick={() => onEdit(edited === "new" ? null : "new")}>
            <Icon name="list-filter" size="s" />
            {t("filter.add")}
            <kbd>F</kbd>
          </Button>
        }
      >
        <FilterBuilder {...{ meta, model, filter }} place={null} onDone={() => (close(), document.getElementById("panel-filter")?.focus())} />
      </Popover>
      {filter.length > 1 && (
        <Button tight look="plain" onClick={() => setFilter([])}>
          {t("filter.clear")}
        </Button>
      )}
    </>
  );
}

interface TokenProps {
  meta: Meta;
  model: Model;
  condition: Condition;
  isOpen: boolean;
  onOpen: (part: "field" | "op" | "value") => void;
  onRemove: () => void;
}

/** A condition. Pressing its field, operator or value opens the editor. */
function Token({ meta, model, condition, isOpen, onOpen, onRemove }: TokenProps) {
  const field = fieldOf(model, condition.field) ?? ID;
  const isNull = condition.op === "is_null";
  const operator = isNull ? t(condition.value ? "op.is_null" : "op.is_null.not") : operatorLabel(field, condition.op);
  const words = `${field.label} ${operator}${isNull ? "" : ` ${textOf(field, condition).replaceAll("\n", ", ")}`}`;
  return (
    <span class="filter-token">
      <button type="button" class="strong" aria-expanded={isOpen} onClick={() => onOpen("field")}>
        {field.label}
      </button>
      <button type="button" class="quiet" onClick={() => onOpen("op")}>
        {operator}
      </button>
      {!isNull && (
        <button type="button" class="strong" onClick={() => onOpen("value")}>
          <ConditionValue {...{ meta, field, condition }} />
        </button>
      )}
      <button type="button" aria-label={t("filter.remove", { words })} onClick={onRemove}>
        <Icon name="x" size="s" />
      </button>
    </span>
  );
}

function ConditionValue({ meta, field, condition }: { meta: Meta; field: Field; condition: Condition }) {
  const values = Array.isArray(condition.value) ? condition.value : [condition.value];
  return (
    <>
      {values.map((value, place) => (
        <span key={place}>
          {place > 0 && ", "}
          {field.kind === "select" && isStateField(meta, field) ? <StateChip field={field} value={String(value)} /> : valueLabel(meta, field, value)}
        </span>
      ))}
    </>
  );
}

function valueLabel(meta: Meta, field: Field, value: unknown): string {
  switch (field.kind) {
    case "select":
      return optionLabel(field, String(value));
    case "date":
      return date(String(value));
    case "moment":
      return dateTime(String(value));
    case "money":
      return formatMoney(Number(value));
    case "ref": {
      const model = modelOf(meta, field.ref ?? "");
      const record = model && referencedRecord(model, String(value)).value;
      return record ? titleOf(model, record) : String(value).slice(0, 8);
    }
    default:
      return valueToText(field, value);
  }
}

/** The value of a condition as text for the editor. */
function textOf(field: Field, { op, value }: Condition): string {
  return op === "is_null" ? "" : (Array.isArray(value) ? value : [value]).map((each) => valueToText(field, each)).join("\n");
}

const DATE_OPERATORS = ["gt", "gte", "lt", "lte"] as const;

/** The label of an operator; for dates, "before" and "after". */
function operatorLabel({ kind }: Field, op: string): string {
  const ofDates = DATE_OPERATORS.find((each) => each === op);
  return ofDates && (kind === "date" || kind === "moment") ? t(`op.${ofDates}.date`) : t(`op.${op}` as "op.eq");
}
