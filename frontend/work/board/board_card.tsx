// A record on the board: it is dragged, or moved by its menu, which does the same.
import type { Meta, Model, Row } from "../api";
import { addressOf, may, titleOf, defaultColumns } from "../models";
import { Value } from "../values/value";
import { translator } from "../../shared/i18n";

const t = translator("board");

interface Props {
  meta: Meta;
  model: Model;
  row: Row;
  /** The states it can be moved to. */
  states: readonly string[];
  onMove: (state: string) => void;
}

const FACTS = 3;

export function BoardCard({ meta, model, row, states, onMove }: Props) {
  const title = titleOf(model, row);
  const facts = defaultColumns(model, FACTS + 1).slice(1).filter((each) => row[each.name] !== null && each.options === null);
  return (
    <li
      class="board-card"
      draggable={states.length > 0}
      onDragStart={(event) => event.dataTransfer?.setData("text/plain", row.id)}
    >
      {may(model, "get") ? <a href={addressOf(model.name, row.id)}>{title}</a> : title}
      {facts.map((field) => (
        <span key={field.name} class="small quiet">
          {field.label}: <Value meta={meta} field={field} value={row[field.name]} />
        </span>
      ))}
      {states.length > 0 && (
        <select
          class="input tight"
          aria-label={t("move.of", { name: title })}
          value=""
          onChange={(event) => event.currentTarget.value && onMove(event.currentTarget.value)}
        >
          <option value="">{t("move")}</option>
          {states.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      )}
    </li>
  );
}
