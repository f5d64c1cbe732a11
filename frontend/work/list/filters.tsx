// The filter builder: conditions with exactly the operators the API has for a field, joined by "and".
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Field as Asking, SelectField } from "../../shared/components/field";
import { showToast } from "../../shared/toast";
import type { Field, Meta, Model } from "../api";
import { fieldOf, ID } from "../models";
import { Control } from "../values/control";
import { type Condition, operand, type Operator, operators } from "../values/operators";
import { valueToText } from "../values/field_text";
import { setFilter } from "./query";
import { translator } from "../../shared/i18n";

const t = translator("list");

interface Props {
  meta: Meta;
  model: Model;
  filter: readonly Condition[];
  /** How often the key asked for it: each time its first control takes the keyboard. */
  calls: number;
  onLeave: () => void;
}

export function Filters({ meta, model, filter, calls, onLeave }: Props) {
  const box = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (calls > 0) {
      box.current?.querySelector("select")?.focus();
    }
  }, [calls]);
  const fields = [...model.fields, ID].filter((each) => operators(each).length > 0);
  const [name, setName] = useState(fields[0]?.name ?? "id");
  const field = fieldOf(model, name) ?? ID;
  const [said, setSaid] = useState<string>("");
  const [text, setText] = useState("");
  const known = operators(field).flatMap((each) => (each === "is_null" ? [each, "is_null.not"] : [each]));
  const op = known.includes(said) ? said : (known[0] ?? "eq");
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
    setFilter([...filter, { field: field.name, op: operator, value: found.value }]);
    setText("");
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !event.defaultPrevented) {
      event.preventDefault();
      onLeave();
    }
  };
  return (
    <form class="panel-box stack" ref={box} onSubmit={add} onKeyDown={keyed} aria-label={t("filter")}>
      <div class="filters tight">
        <SelectField
          name="filter-field"
          label={t("filter.field")}
          value={name}
          onChange={choose}
          options={fields.map((each) => [each.name, each.label])}
        />
        <SelectField
          name="filter-op"
          label={t("filter.op")}
          value={op}
          onChange={setSaid}
          options={known.map((each) => [each, operatorLabel(field, each)])}
        />
        {!op.startsWith("is_null") && (
          <Asking name="filter-value" label={t("filter.value")}>
            {(given) => (
              <Control
                meta={meta}
                field={op === "in" ? { ...field, kind: "longtext" } : field}
                text={text}
                given={given}
                onText={setText}
              />
            )}
          </Asking>
        )}
        <Button type="submit">{t("filter.add")}</Button>
      </div>
    </form>
  );
}

/** The conditions that hold, each with its way out. */
export function Conditions({ model, filter }: { model: Model; filter: readonly Condition[] }) {
  if (filter.length === 0) {
    return null;
  }
  return (
    <ul class="conditions" aria-label={t("filter")}>
      {filter.map((each, place) => {
        const words = inWords(fieldOf(model, each.field) ?? ID, each);
        return (
          <li key={words} class="chip">
            {words}
            <button
              type="button"
              class="chip-out"
              aria-label={t("filter.remove", { words })}
              onClick={() => setFilter(filter.filter((_, other) => other !== place))}
            >
              ×
            </button>
          </li>
        );
      })}
      <li>
        <Button tight look="plain" onClick={() => setFilter([])}>
          {t("filter.clear")}
        </Button>
      </li>
    </ul>
  );
}

function inWords(field: Field, { op, value }: Condition): string {
  if (op === "is_null") {
    return `${field.label} ${t(value ? "op.is_null" : "op.is_null.not")}`;
  }
  const values = (Array.isArray(value) ? value : [value]).map((each) => valueToText(field, each));
  return `${field.label} ${operatorLabel(field, op)} ${values.join(", ")}`;
}

const DATE_OPERATORS = ["gt", "gte", "lt", "lte"] as const;

/** An operator as text; dates are before or after each other. */
function operatorLabel({ kind }: Field, op: string): string {
  const ofDates = DATE_OPERATORS.find((each) => each === op);
  return ofDates && (kind === "date" || kind === "moment") ? t(`op.${ofDates}.date`) : t(`op.${op}` as "op.eq");
}
