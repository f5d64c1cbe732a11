// Fields before and after, side by side.
import type { Field, Meta } from "../api";
import { Value } from "../values/value";
import { diffTexts } from "./text_diff";
import { TextChange } from "./text_change";
import { translator } from "../../shared/i18n";
import "./changes.css";

const t = translator("record");

export interface Change {
  /** The field, or undefined if its model is unknown. */
  field: Field | undefined;
  name: string;
  before: unknown;
  after: unknown;
}

const PLAIN: Omit<Field, "name" | "label"> = {
  kind: "text",
  help: "",
  required: false,
  readonly: true,
  options: null,
  ref: null,
  on_delete: null,
  is_part: false,
  may_hide: false,
  filled_from: null,
  masked: false,
};

interface Props {
  meta: Meta;
  changes: readonly Change[];
  /** Visible headings of the columns. */
  heads?: readonly [field: string, before: string, after: string];
  /** Shown instead of the new values if nothing is left: in their column, or below the table on a phone. */
  nothing?: string | undefined;
}

export function Changes({ meta, changes, heads, nothing }: Props) {
  return (
    <table class={heads ? "changes diff" : "changes"}>
      <thead class={heads ? undefined : "hidden-text"}>
        <tr>
          {heads ? <th scope="col">{heads[0]}</th> : <td />}
          <th scope="col">{heads?.[1] ?? t("history.before")}</th>
          <th scope="col">{heads?.[2] ?? t("history.after")}</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ field, name, before, after }, place) => {
          const known = field ?? { ...PLAIN, name, label: name };
          const parts = isText(known) ? diffTexts(textOf(before), textOf(after)) : null;
          const shown = (value: unknown, side: "before" | "after") =>
            parts && value ? <TextChange parts={parts[side]} /> : <Value meta={meta} field={known} value={value} />;
          return (
            <tr key={name}>
              <th scope="row">{known.label}</th>
              <td class="before">{shown(before, "before")}</td>
              {nothing === undefined ? (
                <td class="after">{shown(after, "after")}</td>
              ) : place === 0 ? (
                <td class="nothing" rowSpan={changes.length}>
                  {nothing}
                </td>
              ) : null}
            </tr>
          );
        })}
      </tbody>
      {nothing !== undefined && (
        <tfoot>
          <tr>
            <th scope="row">{heads?.[2] ?? t("history.after")}</th>
            <td>{nothing}</td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}

function isText(field: Pick<Field, "kind" | "masked">): boolean {
  return (field.kind === "text" || field.kind === "longtext") && !field.masked;
}

function textOf(value: unknown): string {
  return value === null || value === undefined ? "" : String(value);
}
