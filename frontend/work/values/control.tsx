// The control for a field, by its kind. It contains text, which field_text.ts parses.
import type { Field, Meta } from "../api";
import { modelOf } from "../models";
import type { ControlAttributes } from "./control_attributes";
import { optionLabel } from "./options";
import { RefPicker } from "./ref_picker";
import { translator } from "../../shared/i18n";

const tCommon = translator("common");
const t = translator("values");

interface Props {
  meta: Meta;
  field: Field;
  text: string;
  given: ControlAttributes;
  /** Whether an empty value may be chosen. */
  canBeEmpty?: boolean;
  /** Whether a new record can be created for a ref. */
  makes?: boolean;
  onText: (text: string) => void;
}

type Typing = Event & { currentTarget: HTMLInputElement | HTMLTextAreaElement };

export function Control({ meta, field, text, given, canBeEmpty = true, makes = false, onText }: Props) {
  const { required: isRequired, ...common } = given;
  const requiredAttribute = isRequired ? { "aria-required": true } : {};
  const write = (event: Typing) => onText(event.currentTarget.value);
  switch (field.kind) {
    case "longtext":
      return <textarea {...common} {...requiredAttribute} value={text} onInput={write} rows={5} />;
    case "bool":
      return <Choice {...{ common, text, onText, canBeEmpty }} options={[["true", tCommon("yes")], ["false", tCommon("no")]]} />;
    case "select":
      return <Choice {...{ common, text, onText, canBeEmpty }} options={(field.options ?? []).map((option) => [option, optionLabel(field, option)])} />;
    case "ref": {
      const model = field.ref ? modelOf(meta, field.ref) : undefined;
      return <RefPicker meta={meta} model={model} id={text} given={common} makes={makes} onChoose={onText} />;
    }
    case "date":
      return <input {...common} {...requiredAttribute} type="date" value={text} onInput={write} />;
    case "money":
      return <input {...common} {...requiredAttribute} type="text" inputMode="decimal" value={text} onInput={write} />;
    case "number":
      return <input {...common} {...requiredAttribute} type="text" inputMode="numeric" value={text} onInput={write} />;
    default:
      return <input {...common} {...requiredAttribute} type="text" value={text} onInput={write} />;
  }
}

interface ChoiceProps {
  common: Omit<ControlAttributes, "required">;
  text: string;
  options: readonly (readonly [string, string])[];
  canBeEmpty: boolean;
  onText: (text: string) => void;
}

function Choice({ common, text, options, canBeEmpty, onText }: ChoiceProps) {
  return (
    <select {...common} value={text} onChange={(event) => onText(event.currentTarget.value)}>
      {(canBeEmpty || text === "") && (
        <option value="" selected={text === ""}>
          {t("nothing")}
        </option>
      )}
      {options.map(([value, label]) => (
        <option key={value} value={value} selected={value === text}>
          {label}
        </option>
      ))}
    </select>
  );
}
