// Fields before and after, side by side.
import type { Field, Meta } from "../api";
import { Value } from "../values/value";
import { say } from "./say";

export interface Change {
  /** The field, where its model is known; its name stands for itself otherwise. */
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
  ref: null, on_delete: null, may_hide: false,
  masked: false,
};

export function Changes({ meta, changes }: { meta: Meta; changes: readonly Change[] }) {
  return (
    <table class="changes">
      <thead class="hidden-text">
        <tr>
          <td />
          <th scope="col">{say("history.before")}</th>
          <th scope="col">{say("history.after")}</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ field, name, before, after }) => {
          const known = field ?? { ...PLAIN, name, label: name };
          return (
            <tr key={name}>
              <th scope="row">{known.label}</th>
              <td class="before">
                <Value meta={meta} field={known} value={before} />
              </td>
              <td class="after">
                <Value meta={meta} field={known} value={after} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
