// The filter bar: conditions as tokens, and the editor with the operators that the API has for the field.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Field as FormField, SelectField } from "../../shared/components/field";
import { showToast } from "../../shared/toast";
import type { Field, Meta, Model } from "../api";
import { fieldOf, ID, modelOf, titleOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { Control } from "../values/control";
import { date, dateTime, plural, translator } from "../../shared/i18n";
import { formatMoney } from "../values/money";
import { isStateField, optionLabel, StateChip } from "../values/options";
import { type Condition, operand, type Operator, operators } from "../values/operators";
import { valueToText } from "../values/field_text";
import { isNarrow } from "../screen_size";
import { Popover } from "../popover";
import { setFilter } from "./query";
import { currentView, isViewChanged } from "./saved_views";

const t = translator("list");

interface BuilderProps {
  meta: Meta;
  model: Model;
  filter: readonly Condition[];
  /** The index of the edited condition, or null to add one. */
  index: number | null;
  /** The control that gets the focus. */
  focusedControl?: "field" | "op" | "value";
  onDone: () => void;
}

function FilterBuilder({ meta, model, filter, index, focusedControl = "field", onDone }: BuilderProps) {
  const box = useRef<HTMLFormElement>(null);
  const editedCondition = index === null ? undefined : filter[index];
  const fields = [...model.fields, ID].filter((field) => operators(field).length > 0);
  const [name, setName] = useState(editedCondition?.field ?? fields[0]?.name ?? "id");
  const field = fieldOf(model, name) ?? ID;
  const [selectedOp, setSelectedOp] = useState<string>(editedCondition ? (editedCondition.op === "is_null" && editedCondition.value === false ? "is_null.not" : editedCondition.op) : "");
  const [text, setText] = useState(editedCondition ? textOf(field, editedCondition) : "");
  const opChoices = operators(field).flatMap((operator) => (operator === "is_null" ? [operator, "is_null.not"] : [operator]));
  const op = opChoices.includes(selectedOp) ? selectedOp : (opChoices[0] ?? "eq");
  useEffect(() => {
    (box.current?.querySelector<HTMLElement>(`#filter-${focusedControl}`) ?? box.current?.querySelector("select"))?.focus();
  }, []);
  const chooseField = (fieldName: string) => {
    setName(fieldName);
    setText("");
  };
  const apply = (event: SubmitEvent) => {
    event.preventDefault();
    const operator = op.replace(".not", "") as Operator;
    const parsedOperand = operand(field, operator, op === "is_null.not" ? "false" : text);
    if (parsedOperand === null) {
      showToast(t("filter.fault", { label: field.label }));
      return;
    }
    const condition = { field: field.name, op: operator, value: parsedOperand.value };
    setFilter(model, index === null ? [...filter, condition] : filter.map((old, conditionIndex) => (conditionIndex === index ? condition : old)));
    onDone();
  };
  return (
    <form class="stack tight" ref={box} onSubmit={apply} aria-label={t("filter")}>
      <SelectField name="filter-field" label={t("filter.field")} value={name} onChange={chooseField} options={fields.map((field) => [field.name, field.label])} />
      <SelectField name="filter-op" label={t("filter.op")} value={op} onChange={setSelectedOp} options={opChoices.map((opChoice) => [opChoice, operatorLabel(field, opChoice)])} />
      {!op.startsWith("is_null") && (
        <FormField name="filter-value" label={t("filter.value")}>
          {(controlAttributes) => <Control meta={meta} field={op === "in" ? { ...field, kind: "longtext" } : field} text={text} given={controlAttributes} onText={setText} />}
        </FormField>
      )}
      <Button type="submit" variant="strong">
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
  const [isFolded, setFolded] = useState(true);
  const view = currentView();
  const [focusedControl, setFocusedControl] = useState<"field" | "op" | "value">("field");
  const close = () => onEdit(null);
  const open = (index: number, control: typeof focusedControl) => {
    setFocusedControl(control);
    onEdit(edited === index ? null : index);
  };
  // On a phone, one button opens the conditions of an unchanged view.
  const isOfView = view !== undefined && !isViewChanged(model, view);
  if (isNarrow.value && isFolded && edited === null && filter.length > 0 && isOfView) {
    return (
      <Button tight variant="plain" aria-expanded={false} onClick={() => setFolded(false)}>
        <Icon name="list-filter" size="s" />
        {plural(filter.length, t("filter.count.one"), t("filter.count"))}
      </Button>
    );
  }
  return (
    <>
      {filter.length > 0 && (
        <ul class="conditions" aria-label={t("filter")}>
          {filter.map((condition, index) => (
            <li key={JSON.stringify(condition)}>
              <Popover
                isOpen={edited === index}
                onClose={close}
                label={t("filter")}
                opener={<ConditionToken {...{ meta, model, condition }} isOpen={edited === index} onOpen={(control) => open(index, control)} onRemove={() => setFilter(model, filter.filter((_, other) => other !== index))} />}
              >
                <FilterBuilder {...{ meta, model, filter, index, focusedControl }} onDone={close} />
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
          <Button id="panel-filter" tight variant="plain" aria-expanded={edited === "new"} onClick={() => onEdit(edited === "new" ? null : "new")}>
            <Icon name="list-filter" size="s" />
            {t("filter.add")}
            <kbd>F</kbd>
          </Button>
        }
      >
        <FilterBuilder {...{ meta, model, filter }} index={null} onDone={() => (close(), document.getElementById("panel-filter")?.focus())} />
      </Popover>
      {filter.length > 1 && !isOfView && (
        <Button tight variant="plain" onClick={() => setFilter(model, [])}>
          {t("filter.clear")}
        </Button>
      )}
    </>
  );
}

interface ConditionTokenProps {
  meta: Meta;
  model: Model;
  condition: Condition;
  isOpen: boolean;
  onOpen: (control: "field" | "op" | "value") => void;
  onRemove: () => void;
}

/** A condition. Pressing its field, operator or value opens the editor. */
function ConditionToken({ meta, model, condition, isOpen, onOpen, onRemove }: ConditionTokenProps) {
  const field = fieldOf(model, condition.field) ?? ID;
  const isNull = condition.op === "is_null";
  const operator = isNull ? t(condition.value ? "op.is_null" : "op.is_null.not") : operatorLabel(field, condition.op);
  const description = `${field.label} ${operator}${isNull ? "" : ` ${textOf(field, condition).replaceAll("\n", ", ")}`}`;
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
      <button type="button" aria-label={t("filter.remove", { words: description })} onClick={onRemove}>
        <Icon name="x" size="s" />
      </button>
    </span>
  );
}

function ConditionValue({ meta, field, condition }: { meta: Meta; field: Field; condition: Condition }) {
  const values = Array.isArray(condition.value) ? condition.value : [condition.value];
  return (
    <>
      {values.map((value, index) => (
        <span key={index}>
          {index > 0 && ", "}
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
  return op === "is_null" ? "" : (Array.isArray(value) ? value : [value]).map((operand) => valueToText(field, operand)).join("\n");
}

const DATE_OPERATORS = ["gt", "gte", "lt", "lte"] as const;

/** The label of an operator; for dates, "before" and "after". */
function operatorLabel({ kind }: Field, op: string): string {
  const dateOperator = DATE_OPERATORS.find((dateOperator) => dateOperator === op);
  return dateOperator && (kind === "date" || kind === "moment") ? t(`op.${dateOperator}.date`) : t(`op.${op}` as "op.eq");
}
