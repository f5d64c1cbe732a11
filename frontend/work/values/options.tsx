// The labels of a select field's options, and the colours of states.
import { Chip, type Tone } from "../../shared/components/chip";
import { escapeInvisible } from "../../shared/invisible_characters";
import { type Field, inLanguage, type Meta, type Model } from "../api";
import { workflowField } from "../models";

const TONES: readonly Tone[] = ["info", "cyan", "violet"];
/** Matches names of bad end states, for workflows that declare no colours. */
const BAD = /^(lost|cancel\w*|fail\w*|reject\w*|void\w*|refused|withdrawn|closed_lost)$/;
const QUIET = /^(closed|archived|expired|draft)$/;
const DUE = /^(waiting|pending|overdue|due)$/;

/** The declared label, or else the key as words: "In progress" for "in_progress". */
export function optionLabel(field: Field, value: string): string {
  const declared = field.choices?.find((each) => each.value === value)?.label;
  const words = value.replaceAll("_", " ");
  return escapeInvisible(inLanguage(declared, words.charAt(0).toUpperCase() + words.slice(1)));
}

/** The colour of a state: as declared, else by its name (bad, inactive or due), else by its position. Undefined means
 *  grey. */
export function optionTone(field: Field, value: string): Tone | undefined {
  const declared = field.choices?.find((each) => each.value === value);
  if (declared) {
    return declared.tone === "grey" ? undefined : (declared.tone as Tone);
  }
  const states = field.options ?? [];
  if (BAD.test(value)) {
    return "bad";
  }
  if (QUIET.test(value) || !states.includes(value)) {
    return undefined;
  }
  if (DUE.test(value)) {
    return "warn";
  }
  const going = states.filter((each) => !BAD.test(each) && !QUIET.test(each) && !DUE.test(each));
  const at = going.indexOf(value);
  return at === going.length - 1 && going.length > 1 ? "good" : TONES[Math.min(at, TONES.length - 1)];
}

/** True for workflow state fields, and for fields with a choice in a colour other than grey. */
export function isStateField(meta: Meta, field: Field): boolean {
  return Boolean(field.choices?.some((each) => each.tone !== "grey")) || stateFields(meta).has(field);
}

let known: { meta: Meta; fields: ReadonlySet<Field> } | null = null;

function stateFields(meta: Meta): ReadonlySet<Field> {
  if (known?.meta !== meta) {
    known = { meta, fields: new Set(meta.models.flatMap((model: Model) => workflowField(model) ?? [])) };
  }
  return known.fields;
}

export function StateChip({ field, value }: { field: Field; value: string }) {
  return <Chip tone={optionTone(field, value)}>{optionLabel(field, value)}</Chip>;
}

/** A state as a chip, or any other option as a word. */
export function OptionValue({ meta, field, value }: { meta: Meta; field: Field; value: string }) {
  return isStateField(meta, field) ? <StateChip field={field} value={value} /> : <span class="option">{optionLabel(field, value)}</span>;
}
