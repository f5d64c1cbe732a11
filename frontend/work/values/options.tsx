// The labels of a select field's options, and the colours of states.
import { Chip, type Tone } from "../../shared/components/chip";
import { escapeInvisible } from "../../shared/invisible_characters";
import { type Field, inLanguage, type Meta, type Model } from "../api";
import { workflowField } from "../models";

const TONES: readonly Tone[] = ["info", "cyan", "violet"];
/** Matches names of bad end states, for workflows that declare no colours. */
const BAD_STATES = /^(lost|cancel\w*|fail\w*|reject\w*|void\w*|refused|withdrawn|closed_lost)$/;
const QUIET_STATES = /^(closed|archived|expired|draft)$/;
const DUE_STATES = /^(waiting|pending|overdue|due)$/;

/** The declared label. Without a label, the key as words: "In progress" for "in_progress". */
export function optionLabel(field: Field, value: string): string {
  const declaredLabel = field.choices?.find((choice) => choice.value === value)?.label;
  const plainText = value.replaceAll("_", " ");
  return escapeInvisible(inLanguage(declaredLabel, plainText.charAt(0).toUpperCase() + plainText.slice(1)));
}

/** The colour of a state. A state without a declared colour gets a colour by its name (bad, inactive or due), and any
 *  other state gets a colour by its position. Undefined means grey. */
export function optionTone(field: Field, value: string): Tone | undefined {
  const declaredChoice = field.choices?.find((choice) => choice.value === value);
  if (declaredChoice) {
    return declaredChoice.tone === "grey" ? undefined : (declaredChoice.tone as Tone);
  }
  const states = field.options ?? [];
  if (BAD_STATES.test(value)) {
    return "bad";
  }
  if (QUIET_STATES.test(value) || !states.includes(value)) {
    return undefined;
  }
  if (DUE_STATES.test(value)) {
    return "warn";
  }
  const openStates = states.filter((state) => !BAD_STATES.test(state) && !QUIET_STATES.test(state) && !DUE_STATES.test(state));
  const stateIndex = openStates.indexOf(value);
  return stateIndex === openStates.length - 1 && openStates.length > 1 ? "good" : TONES[Math.min(stateIndex, TONES.length - 1)];
}

/** True for workflow state fields, and for fields with a choice in a colour other than grey. */
export function isStateField(meta: Meta, field: Field): boolean {
  return Boolean(field.choices?.some((choice) => choice.tone !== "grey")) || stateFields(meta).has(field);
}

let cachedFields: { meta: Meta; fields: ReadonlySet<Field> } | null = null;

function stateFields(meta: Meta): ReadonlySet<Field> {
  if (cachedFields?.meta !== meta) {
    cachedFields = { meta, fields: new Set(meta.models.flatMap((model: Model) => workflowField(model) ?? [])) };
  }
  return cachedFields.fields;
}

export function StateChip({ field, value }: { field: Field; value: string }) {
  return <Chip tone={optionTone(field, value)}>{optionLabel(field, value)}</Chip>;
}

/** A state as a chip, or any other option as a word. */
export function OptionValue({ meta, field, value }: { meta: Meta; field: Field; value: string }) {
  return isStateField(meta, field) ? <StateChip field={field} value={value} /> : <span class="option">{optionLabel(field, value)}</span>;
}
