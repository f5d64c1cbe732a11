// Chooses a record of another model: search while typing, those last used first (ARIA practices, combobox).
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { type Meta, type Model, type Row, run } from "../api";
import { canList, fieldOf, mayRun, titleOf } from "../models";
import { cacheRecords, recentIds, referencedRecord, rememberVisit } from "../referenced_records";
import { RecordCard } from "./record_card";
import { newRecordRequest } from "./new_record_request";
import type { ControlAttributes } from "./control_attributes";
import { translator } from "../../shared/i18n";
import "./picker.css";

const t = translator("values");

const MAX_SHOWN = 8;

interface Props {
  meta: Meta;
  model: Model | undefined;
  id: string;
  given: Omit<ControlAttributes, "required">;
  /** Whether a new record can be created here. */
  makes?: boolean;
  onChoose: (id: string) => void;
}

/** The query: the records last used if nothing is typed, or else records whose title contains the text. */
function searchInput(model: Model, text: string): object {
  const field = fieldOf(model, model.shown_as);
  const canSearch = field && !field.masked && field.name !== "id";
  if (text && canSearch) {
    return { filter: [{ field: field.name, op: "contains", value: text }], limit: MAX_SHOWN };
  }
  return text ? { filter: [{ field: "id", op: "eq", value: text }], limit: MAX_SHOWN } : { limit: MAX_SHOWN };
}

export function RefPicker({ meta, model, id, given, makes = false, onChoose }: Props) {
  const [text, setText] = useState<string | null>(null);
  const [foundRows, setFoundRows] = useState<Row[]>([]);
  const [recentIdList, setRecentIdList] = useState<readonly string[]>([]);
  const [isThere, setThere] = useState(false);
  const [activeIndex, setActiveIndex] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const isOpen = text !== null;
  useEffect(() => {
    if (text === null || !model || !canList(model)) {
      return undefined;
    }
    const controller = new AbortController();
    const load = async () => {
      const lastIds = text ? [] : recentIds(model.name);
      const ownAnswer = lastIds.length ? await run<Row[]>(model.name, "list", { filter: [{ field: "id", op: "in", value: lastIds }], limit: MAX_SHOWN }, controller.signal) : null;
      const searchAnswer = await run<Row[]>(model.name, "list", searchInput(model, text), controller.signal);
      const firstRows = ownAnswer?.value ?? [];
      setRecentIdList(ownAnswer ? lastIds : []);
      setThere(true);
      setFoundRows([...firstRows, ...searchAnswer.value.filter((row) => !lastIds.includes(row.id))].slice(0, MAX_SHOWN));
    };
    const timer = setTimeout(() => void load().catch(() => controller.signal.aborted || setFoundRows([])), text ? 120 : 0);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, model]);
  const record = model && id ? referencedRecord(model, id).value : null;
  const shownText = text ?? (record && model ? titleOf(model, record) : id && t("ref.hidden", { id: id.slice(0, 8) }));
  const choose = (row: Row) => {
    if (model) {
      cacheRecords(model, [row]);
      rememberVisit(model.name, row.id);
    }
    onChoose(row.id);
    setText(null);
    setActiveIndex(-1);
  };
  // Wait for the results: otherwise an early Enter would create a record instead of choosing the first one.
  const canMake = makes && model !== undefined && isThere && mayRun(model, "create");
  /** Create a record: the last entry, after the results. */
  const make = () => {
    if (model) {
      newRecordRequest.value = { model, name: text ?? "", onMade: choose };
      setText(null);
    }
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setText(text ?? "");
      // Before the results arrive, the first one is chosen.
      setActiveIndex(Math.max(-1, Math.min(Math.max(0, foundRows.length - (canMake ? 0 : 1)), activeIndex + step)));
    } else if (event.key === "Enter" && isOpen && canMake && activeIndex === foundRows.length) {
      event.preventDefault();
      event.stopPropagation();
      make();
    } else if (event.key === "Enter" && isOpen && foundRows[activeIndex]) {
      event.preventDefault();
      event.stopPropagation();
      choose(foundRows[activeIndex]);
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      event.stopPropagation();
      setText(null);
    }
  };
  const list = `${given.id}-list`;
  const isMaking = canMake && activeIndex === foundRows.length;
  const marked = isMaking ? `${list}-make` : foundRows[activeIndex] ? `${list}-${activeIndex}` : undefined;
  const looked = isOpen ? foundRows[activeIndex] : undefined;
  const describedBy = [given["aria-describedby"], looked && `${list}-card`].filter(Boolean).join(" ");
  return (
    <div class="picker">
      <input
        {...given}
        ref={input}
        type="text"
        role="combobox"
        autocomplete="off"
        placeholder={t("ref.search")}
        aria-autocomplete="list"
        aria-expanded={isOpen}
        aria-controls={list}
        aria-activedescendant={isOpen ? marked : undefined}
        aria-describedby={describedBy || undefined}
        value={shownText}
        onInput={(event) => (setText(event.currentTarget.value), setActiveIndex(-1))}
        onClick={() => setText(text ?? "")}
        onKeyDown={handleKeyDown}
        onBlur={() => setText(null)}
      />
      {id && (
        <Button tight variant="plain" aria-label={`${t("ref.clear")}: ${given["aria-label"] ?? given.name}`} onClick={() => onChoose("")}>
          ×
        </Button>
      )}
      <div class="picker-pop" hidden={!isOpen}>
        <ul class="picker-list" role="listbox" id={list} aria-label={model?.plural ?? ""}>
          {isOpen && foundRows.length === 0 && !canMake && (
            <li role="option" aria-selected="false" aria-disabled="true" class="quiet">
              {t("ref.none")}
            </li>
          )}
          {model &&
            isOpen &&
            foundRows.map((row, index) => (
              <li
                key={row.id}
                role="option"
                id={`${list}-${index}`}
                aria-selected={index === activeIndex}
                onPointerDown={(event) => (event.preventDefault(), choose(row))}
              >
                {titleOf(model, row)}
                {recentIdList.includes(row.id) && <span class="small quiet"> · {t("ref.recent")}</span>}
              </li>
            ))}
          {model && isOpen && canMake && (
            <li
              role="option"
              id={`${list}-make`}
              aria-selected={isMaking}
              onPointerDown={(event) => (event.preventDefault(), make())}
            >
              {text ? t("ref.make.named", { label: model.label, text }) : t("ref.make", { label: model.label })}
            </li>
          )}
        </ul>
        {model && looked && <RecordCard {...{ meta, model, row: looked }} id={`${list}-card`} />}
      </div>
    </div>
  );
}
