// A card of the board. It can be dragged, or moved with its menu.
import { useRef } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { type Field, type Meta, type Model, type Row } from "../api";
import { addressOf, listColumns, mayRun, titleOf } from "../models";
import { formatWholeAmount } from "../values/money";
import { optionLabel } from "../values/options";
import { Value } from "../values/value";
import { translator } from "../../shared/i18n";

const t = translator("board");

interface Props {
  meta: Meta;
  model: Model;
  /** The field whose values are the columns. */
  field: Field;
  row: Row;
  /** The states that the record can be moved to. */
  states: readonly string[];
  onMove: (state: string) => void;
  onDrag: (states: readonly string[] | null) => void;
}

const FACTS = 1;

export function BoardCard({ meta, model, field, row, states, onMove, onDrag }: Props) {
  const card = useRef<HTMLLIElement>(null);
  const title = titleOf(model, row);
  const filledFields = listColumns(model).slice(1).filter((column) => column !== field && row[column.name] !== null && row[column.name] !== "");
  const amount = filledFields.find((filledField) => filledField.kind === "money");
  const person = filledFields.find((filledField) => filledField.ref === "user");
  const facts = filledFields.filter((filledField) => filledField !== amount && filledField !== person && ["date", "ref", "text"].includes(filledField.kind)).slice(0, FACTS);
  const handleKey = (event: KeyboardEvent) => {
    if (event.key.toLowerCase() === "m" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      card.current?.querySelector<HTMLElement>(".menu > button")?.click();
    }
  };
  return (
    <li
      ref={card}
      class="board-card"
      draggable={states.length > 0}
      onKeyDown={handleKey}
      onDragStart={(event) => (event.dataTransfer?.setData("text/plain", row.id), onDrag(states))}
      onDragEnd={() => onDrag(null)}
    >
      {mayRun(model, "get") ? <a href={addressOf(model.name, row.id)}>{title}</a> : <strong>{title}</strong>}
      {amount && (
        <span class="amount">
          {typeof row[amount.name] === "number" ? formatWholeAmount(Number(row[amount.name]), amount.currency) : <Value meta={meta} field={amount} value={row[amount.name]} isCell />}
        </span>
      )}
      <span class="card-facts">
        {facts.map((fact) => (
          <span key={fact.name} title={fact.label}>
            <Value meta={meta} field={fact} value={row[fact.name]} isCell />
          </span>
        ))}
        {person && <Value meta={meta} field={person} value={row[person.name]} isCell />}
      </span>
      {states.length > 0 && (
        <Menu label={t("move.of", { name: title })} opener={<Icon name="ellipsis" size="s" />} items={states.map((state) => ({ label: optionLabel(field, state), does: () => onMove(state) }))} />
      )}
    </li>
  );
}
