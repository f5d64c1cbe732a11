// A column of the board: the records in one state, and how many there are.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { number, translator } from "../../shared/i18n";

const t = translator("board");

interface Props {
  state: string;
  total: number;
  /** The list of all of them. */
  address: string;
  isWhole: boolean;
  onDrop: (id: string) => void;
  children: ComponentChildren;
}

export function Lane({ state, total, address, isWhole, onDrop, children }: Props) {
  const [isOver, setOver] = useState(false);
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onDrop(event.dataTransfer?.getData("text/plain") ?? "");
  };
  return (
    <section
      class={isOver ? "lane over" : "lane"}
      aria-labelledby={`lane-${state}`}
      onDragOver={(event) => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={dropped}
    >
      <h2 id={`lane-${state}`}>
        {state} <span class="quiet small">{number(total)}</span>
      </h2>
      {total === 0 ? <p class="quiet small">{t("empty")}</p> : <ul>{children}</ul>}
      {!isWhole && <a href={address}>{t("more")}</a>}
    </section>
  );
}
