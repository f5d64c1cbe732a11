// Edits a value in its cell: Enter saves, Escape cancels.
import { useEffect, useRef, useState } from "preact/hooks";
import { showToast } from "../../shared/toast";
import type { Field, Meta, Row } from "../api";
import { Control } from "../values/control";
import { parseText, valueToText } from "../values/field_text";

interface Props {
  meta: Meta;
  field: Field;
  row: Row;
  onSave: (row: Row, field: Field, value: unknown) => Promise<boolean>;
  onDone: () => void;
}

export function CellEditor({ meta, field, row, onSave, onDone }: Props) {
  const textBefore = valueToText(field, row[field.name]);
  const [text, setText] = useState(textBefore);
  const [isBusy, setBusy] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const control = box.current?.querySelector<HTMLElement>("input, select");
    control?.focus();
    if (control instanceof HTMLInputElement && control.type === "text") {
      control.select();
    }
  }, []);
  const save = async () => {
    const parsedValue = parseText(field, text);
    if (text === textBefore) {
      onDone();
    } else if ("error" in parsedValue) {
      showToast(parsedValue.error);
    } else if (!isBusy) {
      setBusy(true);
      if (await onSave(row, field, parsedValue.value)) {
        onDone();
      }
      setBusy(false);
    }
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      event.preventDefault();
      void save();
    } else if (event.key === "Escape") {
      event.preventDefault();
      onDone();
    }
  };
  return (
    <div
      ref={box}
      class="cell-editor"
      onKeyDown={handleKeyDown}
      onFocusOut={(event) => box.current?.contains(event.relatedTarget as Node | null) || void save()}
    >
      <Control
        {...{ meta, field, text }}
        canBeEmpty={!field.required}
        given={{ id: "cell-editor", name: field.name, class: "input", "aria-label": field.label }}
        onText={setText}
      />
    </div>
  );
}
