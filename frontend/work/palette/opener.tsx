// Opens the palette, by Ctrl-K or its button; what is in it is loaded when it is opened for the first time.
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { registerShortcut } from "../../shared/shortcuts";
import type { Meta } from "../api";
import { later } from "../later";
import { isOpen } from "./offers";
import { translator } from "../../shared/i18n";

const t = translator("work");

const Box = later(async () => (await import("./box")).Box);

export function Palette({ meta }: { meta: Meta }) {
  useEffect(() => registerShortcut({ key: "Ctrl K", does: t("palette.key") }), []);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        isOpen.value = !isOpen.peek();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <Button tight aria-keyshortcuts="Control+K" onClick={() => (isOpen.value = true)}>
        {t("palette")} <kbd>Ctrl K</kbd>
      </Button>
      {isOpen.value && <Box meta={meta} />}
    </>
  );
}
