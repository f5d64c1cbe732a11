// Resolves an edit conflict: shows the old value of each field, the other person's value, and the person's own value.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import type { Meta, Model, Row } from "../api";
import { fieldOf } from "../models";
import { Value } from "../values/value";
import { translator } from "../../shared/i18n";
import "./conflict.css";

const t = translator("record");

export interface EditConflict {
  base: Row;
  serverRecord: Row;
  ownChanges: Record<string, unknown>;
}

interface Props {
  meta: Meta;
  model: Model;
  conflict: EditConflict;
  /** Called with the changes to apply to the other person's version; empty to keep theirs. */
  onDecide: (changes: Record<string, unknown>) => void;
  onClose: () => void;
}

export function Conflict({ meta, model, conflict, onDecide, onClose }: Props) {
  const { base, serverRecord, ownChanges } = conflict;
  const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  const names = [...new Set([...Object.keys(serverRecord).filter((name) => !isSame(serverRecord[name], base[name])), ...Object.keys(ownChanges)])];
  const shownNames = names.filter((name) => name !== "revision" && fieldOf(model, name) && name !== "id");
  const [takesMineByField, setTakesMineByField] = useState<Record<string, boolean>>({});
  const takesMine = (name: string) => name in ownChanges && (takesMineByField[name] ?? isSame(serverRecord[name], base[name]));
  const decide = () => onDecide(Object.fromEntries(Object.entries(ownChanges).filter(([name]) => takesMine(name))));
  return (
    <Dialog
      title={t("conflict.title")}
      isOpen
      onClose={onClose}
      actions={
        <Button variant="strong" onClick={decide}>
          {t("conflict.decide")}
        </Button>
      }
    >
      <p>{t("conflict.text")}</p>
      {shownNames.map((name) => {
        const field = fieldOf(model, name);
        if (!field) {
          return null;
        }
        return (
          <fieldset key={name} class="conflict">
            <legend>{field.label}</legend>
            <p class="small">
              {t("conflict.base")}: <Value meta={meta} field={field} value={base[name]} />
            </p>
            <label class="row">
              <input
                type="radio"
                name={`conflict-${name}`}
                checked={!takesMine(name)}
                disabled={!(name in ownChanges)}
                onChange={() => setTakesMineByField({ ...takesMineByField, [name]: false })}
              />
              {t("conflict.theirs")}: <Value meta={meta} field={field} value={serverRecord[name]} />
            </label>
            {name in ownChanges && (
              <label class="row">
                <input
                  type="radio"
                  name={`conflict-${name}`}
                  checked={takesMine(name)}
                  onChange={() => setTakesMineByField({ ...takesMineByField, [name]: true })}
                />
                {t("conflict.mine")}: <Value meta={meta} field={field} value={ownChanges[name]} />
              </label>
            )}
          </fieldset>
        );
      })}
    </Dialog>
  );
}
