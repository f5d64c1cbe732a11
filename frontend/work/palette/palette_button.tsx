// Opens the command palette by Ctrl-K or its button; its code is loaded when it is first opened.
import { useEffect } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { registerShortcut } from "../../shared/shortcuts";
import type { Meta } from "../api";
import { lazyComponent } from "../lazy_component";
import { isOpen } from "./entries";
import { translator } from "../../shared/i18n";

const t = translator("work");

const Box = lazyComponent(async () => (await import("./palette_dialog")).PaletteDialog);

export function PaletteButton({ meta }: { meta: Meta }) {
  useEffect(() => registerShortcut({ key: "Ctrl K", does: t("palette.key") }), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        isOpen.value = !isOpen.peek();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <>
      <button type="button" class="side-search" aria-keyshortcuts="Control+K" title={t("palette.key")} onClick={() => (isOpen.value = true)}>
        <Icon name="search" />
        <span class="side-label">{t("search.jump")}</span>
        <kbd>Ctrl K</kbd>
      </button>
      {isOpen.value && <Box meta={meta} />}
    </>
  );
}
