// The fields of a record: a control for each field that can be changed, or else its value.
import { Button } from "../../shared/components/button";
import { Field as FieldBox } from "../../shared/components/field";
import type { Problem } from "../../shared/problem";
import type { Field, Meta, Row } from "../api";
import { Control } from "../values/control";
import { valueToText } from "../values/field_text";
import { Value } from "../values/value";
import type { Texts } from "./draft";
import { translator } from "../../shared/i18n";

const tValues = translator("values");
const t = translator("record");

interface Props {
  meta: Meta;
  fields: readonly Field[];
  /** The record as it was loaded; null for a new record. */
  base: Row | null;
  texts: Texts;
  /** A prefix of the fields' names, if the page has another form with the same fields. */
  prefix?: string;
  problem: Problem | null;
  onText: (name: string, text: string) => void;
  onKeep: (name: string) => void;
}

export function FormFields({ meta, fields, base, texts, prefix = "", problem, onText, onKeep }: Props) {
  return (
    <div class="form">
      {fields.map((field) => {
        const error = problem?.fieldErrors.find((error) => error.field === prefix + field.name)?.detail;
        if (field.readonly) {
          return <ReadOnlyField key={field.name} meta={meta} field={field} value={base?.[field.name]} />;
        }
        if (field.masked && base && base[field.name] !== null && !(field.name in texts)) {
          return <MaskedField key={field.name} meta={meta} field={field} value={base[field.name]} onReplace={() => onText(field.name, "")} />;
        }
        const isReplaced = field.masked && base !== null && base[field.name] !== null;
        const text = texts[field.name] ?? (base && !field.masked ? valueToText(field, base[field.name]) : "");
        const help = isReplaced ? tValues("masked.new") : field.help;
        return (
          <FieldBox
            key={field.name}
            name={prefix + field.name}
            label={field.label}
            required={field.required && !(base === null && field.filled_from)}
            wide={field.kind === "longtext"}
            {...(help ? { help } : {})}
            {...(error ? { error } : {})}
          >
            {(controlAttributes) => (
              <div class="row nowrap">
                <Control {...{ meta, field, text, given: controlAttributes }} makes={prefix === ""} canBeEmpty={!field.required || base === null} onText={(newText) => onText(field.name, newText)} />
                {isReplaced && (
                  <Button tight onClick={() => onKeep(field.name)}>
                    {tValues("keep")}
                  </Button>
                )}
              </div>
            )}
          </FieldBox>
        );
      })}
    </div>
  );
}

function ReadOnlyField({ meta, field, value }: { meta: Meta; field: Field; value: unknown }) {
  return (
    <div class={["longtext", "structure"].includes(field.kind) ? "field wide" : "field"}>
      <span class="name">{field.label}</span>
      <div class="shown">
        <Value meta={meta} field={field} value={value} />
      </div>
    </div>
  );
}

/** A masked value: it cannot be edited as text, only kept or replaced. */
function MaskedField({ meta, field, value, onReplace }: { meta: Meta; field: Field; value: unknown; onReplace: () => void }) {
  return (
    <div class="field">
      <span class="name">{field.label}</span>
      <span class="help">{t("masked")}</span>
      <div class="row shown">
        <Value meta={meta} field={field} value={value} />
        <Button tight aria-label={`${tValues("replace")}: ${field.label}`} onClick={onReplace}>
          {tValues("replace")}
        </Button>
      </div>
    </div>
  );
}
