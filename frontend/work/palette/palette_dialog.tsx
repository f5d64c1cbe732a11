// The dialog of the command palette: an input and its results (ARIA practices, combobox).
import { useEffect, useRef, useState } from "preact/hooks";
import type { Meta } from "../api";
import { isOpen, type PaletteEntry } from "./entries";
import { allEntries, matchingEntries, recordEntries } from "./search";
import { translator } from "../../shared/i18n";
import "./palette.css";

const t = translator("palette");

const SHOWN = 40;
const PAUSE_MS = 150;

export function PaletteDialog({ meta }: { meta: Meta }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [found, setFound] = useState<PaletteEntry[]>([]);
  const [at, setAt] = useState(0);
  const shown = [...matchingEntries(allEntries(meta), text), ...found].slice(0, SHOWN);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => before instanceof HTMLElement && before.isConnected && before.focus();
  }, []);
  useEffect(() => {
    setAt(0);
    const controller = new AbortController();
    const load = () => recordEntries(meta, text, controller.signal).then((next) => controller.signal.aborted || setFound(next));
    const timer = setTimeout(() => void load(), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  useEffect(() => document.getElementById(`palette-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const choose = (offer: PaletteEntry | undefined) => {
    if (offer) {
      isOpen.value = false;
      setTimeout(offer.run, 0);
    }
  };
  const keyed = (event: KeyboardEvent) => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      setAt((to + shown.length) % Math.max(1, shown.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(shown[at]);
    }
  };
  return (
    <dialog class="dialog palette" ref={dialog} aria-label={t("title")} onClose={() => (isOpen.value = false)}>
      <label class="hidden-text" for="palette">
        {t("label")}
      </label>
      <input
        id="palette"
        class="input"
        type="text"
        role="combobox"
        autocomplete="off"
        placeholder={t("label")}
        aria-expanded="true"
        aria-autocomplete="list"
        aria-controls="palette-list"
        aria-activedescendant={shown.length ? `palette-${at}` : undefined}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={keyed}
      />
      <ul class="palette-list" role="listbox" id="palette-list" aria-label={t("results")}>
        {shown.map((offer, place) => (
          <li
            key={`${place}-${offer.words}`}
            role="option"
            id={`palette-${place}`}
            aria-selected={place === at}
            onPointerDown={(event) => (event.preventDefault(), choose(offer))}
          >
            {offer.words}
          </li>
        ))}
        {shown.length === 0 && (
          <li role="option" aria-selected="false" aria-disabled="true" class="quiet">
            {t("none")}
          </li>
        )}
      </ul>
    </dialog>
  );
}
