// The dialog of the command palette: an input and its results (ARIA practices, combobox).
import { useEffect, useRef, useState } from "preact/hooks";
import type { Meta } from "../api";
import { isOpen, type PaletteEntry } from "./entries";
import { allEntries, matchingEntries, recordEntries } from "./search";
import { translator } from "../../shared/i18n";
import "./palette.css";

const t = translator("palette");

const MAX_SHOWN = 40;
const PAUSE_MS = 150;

export function PaletteDialog({ meta }: { meta: Meta }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [foundRecords, setFoundRecords] = useState<PaletteEntry[]>([]);
  const [activeIndex, setActiveIndex] = useState(0);
  const shownEntries = [...matchingEntries(allEntries(meta), text), ...foundRecords].slice(0, MAX_SHOWN);
  useEffect(() => {
    const focusBefore = document.activeElement;
    dialog.current?.showModal();
    return () => focusBefore instanceof HTMLElement && focusBefore.isConnected && focusBefore.focus();
  }, []);
  useEffect(() => {
    setActiveIndex(0);
    const controller = new AbortController();
    const load = () => recordEntries(meta, text, controller.signal).then((entries) => controller.signal.aborted || setFoundRecords(entries));
    const timer = setTimeout(() => void load(), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  useEffect(() => document.getElementById(`palette-${activeIndex}`)?.scrollIntoView({ block: "nearest" }), [activeIndex]);
  const choose = (offer: PaletteEntry | undefined) => {
    if (offer) {
      isOpen.value = false;
      setTimeout(offer.run, 0);
    }
  };
  const handleKey = (event: KeyboardEvent) => {
    const nextIndex = { ArrowDown: activeIndex + 1, ArrowUp: activeIndex - 1 }[event.key];
    if (nextIndex !== undefined) {
      event.preventDefault();
      setActiveIndex((nextIndex + shownEntries.length) % Math.max(1, shownEntries.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(shownEntries[activeIndex]);
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
        aria-activedescendant={shownEntries.length ? `palette-${activeIndex}` : undefined}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={handleKey}
      />
      <ul class="palette-list" role="listbox" id="palette-list" aria-label={t("results")}>
        {shownEntries.map((offer, index) => (
          <li
            key={`${index}-${offer.words}`}
            role="option"
            id={`palette-${index}`}
            aria-selected={index === activeIndex}
            onPointerDown={(event) => (event.preventDefault(), choose(offer))}
          >
            {offer.words}
          </li>
        ))}
        {shownEntries.length === 0 && (
          <li role="option" aria-selected="false" aria-disabled="true" class="quiet">
            {t("none")}
          </li>
        )}
      </ul>
    </dialog>
  );
}
