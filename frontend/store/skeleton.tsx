// Grey placeholders of the final size, so that nothing moves when the content arrives.
import { translator } from "../shared/i18n";

const t = translator("common");

function CardBone() {
  return (
    <li class="card">
      <span class="bone cover" />
      <span class="bone title" />
      <span class="bone line" />
    </li>
  );
}

export function CardBones({ count = 8, isShelf = false }: { count?: number; isShelf?: boolean }) {
  return (
    <div role="status">
      <span class="hidden-text">{t("loading")}…</span>
      <ul class={isShelf ? "shelf-row" : "cards"} aria-hidden="true">
        {Array.from({ length: count }, (_, index) => (
          <CardBone key={index} />
        ))}
      </ul>
    </div>
  );
}
