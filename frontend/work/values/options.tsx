// The values of a select field as people read them: a label, and for states a colour.
import { Chip, type Tone } from "../../shared/components/chip";
import { escapeInvisible } from "../../shared/invisible_characters";
import { type Field, inLanguage, type Meta, type Model } from "../api";
import { workflowField } from "../models";

const TONES: readonly Tone[] = ["info", "cyan", "violet"];
/** How an undeclared end of a workflow is told from another one. */
const BAD = /^(lost|cancel\w*|fail\w*|reject\w*|void\w*|refused|withdrawn|closed_lost)$/;
const QUIET = /^(closed|archived|expired|draft)$/;
const DUE = /^(waiting|pending|overdue|due)$/;

/** The declared label, else the key as words: "in_progress" is "In progress". */
export function optionLabel(field: Field, value: string): string {
  const declared = field.choices?.find((each) => each.value === value)?.label;
  const words = value.replaceAll("_", " ");
  return escapeInvisible(inLanguage(declared, words.charAt(0).toUpperCase() + words.slice(1)));
}

/** The colour of a state: as declared, else by its place among the states. Undefined is grey. */
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

/** Whether values of this field are states, which have a colour: it is moved by actions, or its choices declare one. */
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

/** A state as a chip, any other option as a word. */
export function OptionValue({ meta, field, value }: { meta: Meta; field: Field; value: string }) {
  return isStateField(meta, field) ? <StateChip field={field} value={value} /> : <span class="option">{optionLabel(field, value)}</span>;
}
