// A column of the board: the records in one state, their number, and the sum of their amounts.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { number, translator } from "../../shared/i18n";
import type { Field } from "../api";
import { StateChip } from "../values/options";

const t = translator("board");

interface Props {
  field: Field;
  state: string;
  total: number;
  /** The formatted sum of the amounts of all records in this state. */
  sum: string | null;
  /** The address of the list of all records in this state. */
  address: string;
  isWhole: boolean;
  /** Whether the dragged card cannot be dropped here. */
  isClosed: boolean;
  onDrop: (id: string) => void;
  children: ComponentChildren;
}

export function Lane({ field, state, total, sum, address, isWhole, isClosed, onDrop, children }: Props) {
  const [isOver, setOver] = useState(false);
  const handleDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onDrop(event.dataTransfer?.getData("text/plain") ?? "");
  };
  return (
    <section
      class={["lane", isOver && !isClosed && "over", isClosed && "dimmed"].filter(Boolean).join(" ")}
      aria-labelledby={`lane-${state}`}
      title={isClosed ? t("closed") : undefined}
      onDragOver={(event) => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={handleDrop}
    >
      <h2 id={`lane-${state}`}>
        <StateChip field={field} value={state} /> <span class="quiet lane-count">{number(total)}</span>
        {sum && <span class="sum">{sum}</span>}
      </h2>
      {total === 0 ? <p class="quiet small">{t("empty")}</p> : <ul>{children}</ul>}
      {!isWhole && <a href={address}>{t("more")}</a>}
    </section>
  );
}
