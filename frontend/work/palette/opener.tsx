// Opens the palette, by Ctrl-K or its button; what is in it is loaded when it is opened for the first time.
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { shortcut } from "../../shared/shortcuts";
import type { Meta } from "../api";
import { later } from "../later";
import { say } from "../say";
import { isOpen } from "./offers";

const Box = later(async () => (await import("./box")).Box);

export function Palette({ meta }: { meta: Meta }) {
  useEffect(() => shortcut({ key: "Ctrl K", does: say("palette.key") }), []);
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
        {say("palette")} <kbd>Ctrl K</kbd>
      </Button>
      {isOpen.value && <Box meta={meta} />}
    </>
  );
}
