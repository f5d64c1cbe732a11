// The bell in the top bar: the number of unseen notifications, and a panel with the latest ones.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { plural, translator } from "../../shared/i18n";
import { LazyPage } from "../lazy_page";
import { me } from "../me";
import { unseen } from "../notifications/unseen";

const t = translator("notifications");

export function Bell() {
  const [isOpen, setOpen] = useState(false);
  const bellBox = useRef<HTMLDivElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) {
      return undefined;
    }
    panel.current?.focus();
    const closeIfOutside = (event: Event) => bellBox.current?.contains(event.target as Node) || setOpen(false);
    document.addEventListener("pointerdown", closeIfOutside);
    return () => document.removeEventListener("pointerdown", closeIfOutside);
  }, [isOpen]);
  if (!me.value) {
    return null;
  }
  const closeOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      setOpen(false);
      opener.current?.focus();
    }
  };
  const count = unseen.value;
  const closeUnlessFocused = () => setTimeout(() => bellBox.current?.contains(document.activeElement) || setOpen(false));
  return (
    <div class="bell" ref={bellBox} onKeyDown={closeOnEscape} onFocusOut={closeUnlessFocused}>
      <button
        type="button"
        class="button plain square"
        ref={opener}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        aria-label={count ? plural(count, t("unseen.one"), t("unseen")) : t("title")}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="bell" />
        {count > 0 && <span class="bell-count" data-count={count > 9 ? "9+" : count} />}
      </button>
      {isOpen && (
        <div class="bell-panel" role="dialog" aria-label={t("title")} tabIndex={-1} ref={panel}>
          <h2>{t("title")}</h2>
          <LazyPage load={async () => (await import("../notifications/bell_panel")).BellPanel} props={{ onLeave: () => setOpen(false) }} isPart />
        </div>
      )}
    </div>
  );
}
