// The conditions of a question as chips, which can be changed and removed, and a menu that adds a condition.
import { useLayoutEffect, useRef } from "preact/hooks";
import { Menu, type MenuItem } from "../../shared/components/menu";
import { date, dateTime, number, translator } from "../../shared/i18n";
import { PLATFORMS, type Platform } from "../platform";
import { withCondition, withValue, OPTION_VALUES, CONDITION_VALUES, withModeToggled, withoutCondition, type Condition, type Conditions, type ConditionName } from "./filter";

const tStore = translator("store");
const t = translator("ask");

interface Props {
  conditions: Conditions;
  /** Titles of products, by slug. */
  titles: ReadonlyMap<string, string>;
  /** Called with the new conditions; `dropped` is the removed condition in words. */
  onChange: (next: Conditions, dropped?: string) => void;
}

const ADDABLE = ["kind", "platform", "channel", "access", "find", "order", "answer"] as const;

export function Chips({ conditions, titles, onChange }: Props) {
  const list = useRef<HTMLUListElement>(null);
  const lastDropped = useRef<{ button: HTMLElement; at: number } | null>(null);
  useLayoutEffect(() => {
    // The focused chip was removed: focus the chip that is now at its position.
    if (lastDropped.current && !lastDropped.current.button.isConnected && document.activeElement === document.body) {
      const { button, at } = lastDropped.current;
      const chips = [...(list.current?.children ?? [])];
      const chip = chips[Math.min(at, chips.length - 2)] ?? chips.at(-1);
      const buttonSelector = button.matches(".token-drop") ? ".token-drop" : "button";
      (chip?.querySelector<HTMLElement>(buttonSelector) ?? chip?.querySelector("button"))?.focus();
    }
  });
  const drop = (condition: Condition) => onChange(withoutCondition(conditions, condition), conditionText(condition, titles));
  return (
    <section class="reading" aria-labelledby="reading">
      <h2 id="reading" class="small quiet">
        {t("read")}
      </h2>
      <ul
        class="tokens"
        ref={list}
        onFocusIn={({ target }) => {
          const button = target as HTMLElement;
          lastDropped.current = { button, at: [...(list.current?.children ?? [])].findIndex((chip) => chip.contains(button)) };
        }}
        onFocusOut={({ relatedTarget }) => {
          if (relatedTarget !== null) {
            lastDropped.current = null;
          }
        }}
      >
        {conditions.map((condition) => (
          <Chip
            key={`${condition.name} ${condition.mode} ${condition.value}`}
            text={chipText(condition, conditions, titles)}
            name={conditionText(condition, titles)}
            items={editItems(condition, conditions, titles, onChange)}
            onDrop={() => drop(condition)}
          />
        ))}
        <li key="add">
          <Menu tight label={t("add")} items={additionItems(conditions, onChange)} />
        </li>
      </ul>
    </section>
  );
}

interface ChipProps {
  text: string;
  /** The full name, for use outside of the chip. */
  name: string;
  items: readonly MenuItem[];
  onDrop: () => void;
}

function Chip({ text, name, items, onDrop }: ChipProps) {
  const handleKey = (event: KeyboardEvent) => {
    const isInMenu = (event.target as Element).matches("[role=menuitem]");
    if (!isInMenu && (event.key === "Delete" || event.key === "Backspace")) {
      event.preventDefault();
      onDrop();
    }
  };
  return (
    <li class="token" onKeyDown={handleKey}>
      {items.length ? <Menu tight label={text} items={items} /> : <span class="token-words">{text}</span>}
      <button type="button" class="token-drop" onClick={onDrop} aria-label={t("drop", { condition: name })}>
        <span aria-hidden="true">×</span>
      </button>
    </li>
  );
}

/** Menu items for the other values of a condition, if it has a fixed list of values. */
function editItems(condition: Condition, conditions: Conditions, titles: Props["titles"], onChange: Props["onChange"]): MenuItem[] {
  const { name, value, mode } = condition;
  const products = conditions.filter((other) => other.name === "product").length;
  const values = CONDITION_VALUES[name] ?? OPTION_VALUES[name] ?? [];
  const isTaken = (newValue: string) => conditions.some((takenCondition) => takenCondition.name === name && takenCondition.value === newValue);
  const items: MenuItem[] = values
    .filter((other) => !isTaken(other) && (other !== "compare" || products > 1))
    .map((other) => ({ label: valueText(name, other, titles), does: () => onChange(withValue(conditions, condition, other)) }));
  if (CONDITION_VALUES[name]) {
    const turn = t(mode === "not" ? "include" : "exclude", { value: valueText(name, value, titles) });
    items.push({ label: turn, does: () => onChange(withModeToggled(conditions, condition)) });
  }
  return items;
}

function additionItems(conditions: Conditions, onChange: Props["onChange"]): MenuItem[] {
  const hasProducts = conditions.filter(({ name }) => name === "product").length > 1;
  return ADDABLE.flatMap((name) => {
    const usedValues = conditions.filter((condition) => condition.name === name).map((condition) => condition.value);
    const isValueCondition = name in CONDITION_VALUES;
    // Omit the default value of an option, which is not a condition. These options have only one value.
    const values = isValueCondition ? CONDITION_VALUES[name] : usedValues.length ? [] : OPTION_VALUES[name]?.slice(1);
    const unusedValues = (values ?? []).filter((value) => !usedValues.includes(value) && (value !== "compare" || hasProducts));
    const actions = unusedValues.map((value) => ({ label: valueText(name, value), does: () => onChange(withCondition(conditions, name, value)) }));
    return actions.length ? [{ label: t(`name.${name}`), does: actions }] : [];
  });
}

/** The text of a condition's chip. The second value of a value condition follows the first as “or App”. */
function chipText(condition: Condition, conditions: Conditions, titles: Props["titles"]): string {
  const { name, mode, value } = condition;
  const isFirst = conditions.find((other) => other.name === name && other.mode !== "not") === condition;
  return mode === "" || mode === "not" || isFirst ? conditionText(condition, titles) : t(mode, { value: valueText(name, value, titles) });
}

/** A condition in full: “Platform: not Windows”. */
function conditionText({ name, mode, value }: Condition, titles: Props["titles"]): string {
  const text = valueText(name, value, titles);
  return t("condition", { name: t(`name.${name as ConditionName}`), value: mode === "not" ? t("not", { value: text }) : text });
}

function valueText(name: string, value: string, titles?: Props["titles"]): string {
  if (name === "kind") return tStore(`kind.${value as "game"}`);
  if (name === "access") return tStore(value as "free");
  if (name === "platform") return PLATFORMS[value as Platform] ?? value;
  if (name === "product") return titles?.get(value) ?? value;
  if (name === "since" || name === "until") return timeText(value);
  if (name === "limit") return number(Number(value));
  if (name === "by") return t(`name.${value as ConditionName}`);
  return OPTION_VALUES[name]?.includes(value) ? t(`${name}.${value}` as "find.products") : value;
}

function timeText(value: string): string {
  const isDay = value.length === 10 || value.endsWith("T00:00:00Z");
  return isDay ? date(value.slice(0, 10)) : dateTime(value);
}
