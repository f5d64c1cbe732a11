// Switches between the table and the board of a model.
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import type { Model } from "../api";

const t = translator("board");

export function ViewSwitch({ model, current }: { model: Model; current: "table" | "board" }) {
  const address = `/models/${model.name}`;
  return (
    <nav class="segments view-switch" aria-label={t("views")}>
      <a href={address} aria-current={current === "table" ? "page" : undefined}>
        <Icon name="list" size="s" />
        {t("list")}
      </a>
      <a href={`${address}/board`} aria-current={current === "board" ? "page" : undefined}>
        <Icon name="kanban" size="s" />
        {t("board.short")}
      </a>
    </nav>
  );
}
