// Pagination: by page if the total is known, otherwise a button that loads more.
import { useEffect, useRef } from "preact/hooks";
import { number, translator } from "../i18n";
import { Button } from "./button";

const t = translator("common");

interface Props {
  offset: number;
  limit: number;
  total: number;
  onGo: (offset: number) => void;
}

/** Buttons for the previous and the next page, and the current position. */
export function Pager({ offset, limit, total, onGo }: Props) {
  const lastShown = Math.min(offset + limit, total);
  return (
    <nav class="pager" aria-label={t("next")}>
      <Button onClick={() => onGo(Math.max(0, offset - limit))} disabled={offset === 0}>
        {t("previous")}
      </Button>
      <span role="status">
        {t("range", { from: number(Math.min(offset + 1, total)), to: number(lastShown), total: number(total) })}
      </span>
      <Button onClick={() => onGo(offset + limit)} disabled={lastShown >= total}>
        {t("next")}
      </Button>
    </nav>
  );
}

/** Loads the next page when the person scrolls to it, or with its button. */
export function LoadMore({ busy, onMore }: { busy: boolean; onMore: () => void }) {
  const end = useRef<HTMLDivElement>(null);
  const loadMore = useRef(onMore);
  loadMore.current = onMore;
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && loadMore.current(), {
      rootMargin: "400px",
    });
    if (end.current) {
      observer.observe(end.current);
    }
    return () => observer.disconnect();
  }, []);
  return (
    <div class="pager" ref={end}>
      <Button busy={busy} onClick={onMore}>
        {t("more")}
      </Button>
    </div>
  );
}
