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

const UNKNOWN_FIELD: Omit<Field, "name" | "label"> = {
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
  headings?: readonly [field: string, before: string, after: string];
  /** Shown instead of the new values if the record is deleted: in their column, or below the table on a phone. */
  emptyText?: string | undefined;
}

export function Changes({ meta, changes, headings, emptyText }: Props) {
  return (
    <table class={headings ? "changes diff" : "changes"}>
      <thead class={headings ? undefined : "hidden-text"}>
        <tr>
          {headings ? <th scope="col">{headings[0]}</th> : <td />}
          <th scope="col">{headings?.[1] ?? t("history.before")}</th>
          <th scope="col">{headings?.[2] ?? t("history.after")}</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ field, name, before, after }, index) => {
          const knownField = field ?? { ...UNKNOWN_FIELD, name, label: name };
          const textDiff = isText(knownField) ? diffTexts(textOf(before), textOf(after)) : null;
          const valueContent = (value: unknown, side: "before" | "after") =>
            textDiff && value ? <TextChange parts={textDiff[side]} /> : <Value meta={meta} field={knownField} value={value} />;
          return (
            <tr key={name}>
              <th scope="row">{knownField.label}</th>
              <td class="before">{valueContent(before, "before")}</td>
              {emptyText === undefined ? (
                <td class="after">{valueContent(after, "after")}</td>
              ) : index === 0 ? (
                <td class="nothing" rowSpan={changes.length}>
                  {emptyText}
                </td>
              ) : null}
            </tr>
          );
        })}
      </tbody>
      {emptyText !== undefined && (
        <tfoot>
          <tr>
            <th scope="row">{headings?.[2] ?? t("history.after")}</th>
            <td>{emptyText}</td>
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
