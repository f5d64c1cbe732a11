// Shows a value by the kind of its field. Its content is always shown as text.
import type { ComponentChildren } from "preact";
import { MaskedValue } from "../../shared/components/chip";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { date, dateTime, number, translator } from "../../shared/i18n";
import type { Field, Meta } from "../api";
import { modelOf } from "../models";
import { formatAmount, formatMoney } from "./money";
import { OptionValue } from "./options";
import { RecordLink } from "./record_link";

const tCommon = translator("common");

interface Props {
  meta: Meta;
  field: Field;
  value: unknown;
  /** Whether it is in a grid, which handles the keyboard. */
  isCell?: boolean;
}

export function Value({ meta, field, value, isCell = false }: Props): ComponentChildren {
  if (value === null || value === undefined || value === "") {
    return isCell ? null : <span class="quiet">–</span>;
  }
  const text = String(value);
  if (field.masked) {
    return <MaskedValue token={text} label={field.label} />;
  }
  switch (field.kind) {
    case "bool":
      return tCommon(value ? "yes" : "no");
    case "date":
      return date(text);
    case "moment":
      return <time dateTime={text}>{dateTime(text)}</time>;
    case "number":
      return number(Number(value));
    case "money":
      return isCell ? formatMoney(Number(value)) : formatAmount(Number(value), field.currency);
    case "select":
      return <OptionValue {...{ meta, field }} value={text} />;
    case "structure":
      return <code class="structure">{JSON.stringify(value, null, isCell ? 0 : 1)}</code>;
    case "ref": {
      const model = field.ref ? modelOf(meta, field.ref) : undefined;
      return <RecordLink model={model} id={text} isCell={isCell} />;
    }
    default:
      return field.kind === "longtext" && !isCell ? (
        <span class="longtext">
          <UntrustedText text={text} />
        </span>
      ) : (
        <UntrustedText text={text} />
      );
  }
}
