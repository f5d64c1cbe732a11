// A field of a form with its help and its error, and the summary of all errors, which takes the focus.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Problem } from "../problem";
import { isServerUnreachable } from "../connectivity";
import { translator } from "../i18n";
import { SignInAgain } from "./states";

const t = translator("common");

interface Common {
  name: string;
  label: string;
  help?: string;
  error?: string | undefined;
  required?: boolean;
  wide?: boolean;
}

interface ControlAttributes {
  id: string;
  name: string;
  class: string;
  required: boolean | undefined;
  "aria-invalid": true | undefined;
  "aria-describedby": string | undefined;
}

/** The label, help and error of a field. `children` gets the attributes of the control, whose `id` is the field's name. */
export function Field(props: Common & { children: (controlAttributes: ControlAttributes) => ComponentChildren }) {
  const { name, label, help, error, required, wide, children } = props;
  const describedBy = [help && `${name}-help`, error && `${name}-fault`].filter(Boolean).join(" ") || undefined;
  return (
    <div class={wide ? "field wide" : "field"}>
      <label for={name}>
        {label}
        {required && <span class="quiet"> ({t("required")})</span>}
      </label>
      {help && (
        <span class="help" id={`${name}-help`}>
          {help}
        </span>
      )}
      {children({
        id: name,
        name,
        class: "input",
        required,
        "aria-invalid": error ? true : undefined,
        "aria-describedby": describedBy,
      })}
      {error && (
        <span class="fault" id={`${name}-fault`}>
          {error}
        </span>
      )}
    </div>
  );
}

interface TextProps extends Common {
  type?: "text" | "search" | "email" | "password" | "url" | "number" | "date";
  value?: string;
  placeholder?: string;
  maxLength?: number;
  autocomplete?: string;
  autocapitalize?: "none";
  autofocus?: boolean;
  onInput?: (event: InputEvent & { currentTarget: HTMLInputElement }) => void;
  onChange?: (event: Event & { currentTarget: HTMLInputElement }) => void;
}

export function TextField({ name, label, help, error, required, wide, type = "text", ...rest }: TextProps) {
  const attributes = { ...rest, type } as JSX.IntrinsicElements["input"];
  return (
    <Field {...{ name, label, help, error, required, wide }}>
      {(controlAttributes) => <input {...attributes} {...(controlAttributes as object)} />}
    </Field>
  );
}

interface SelectProps extends Common {
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  onChange: (value: string) => void;
}

export function SelectField({ value, options, onChange, ...common }: SelectProps) {
  return (
    <Field {...common}>
      {(controlAttributes) => (
        <select {...controlAttributes} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map(([option, label]) => (
            <option key={option} value={option} selected={option === value}>
              {label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** The summary of a form's errors, with links to the fields. It takes the focus, so that screen readers read it. If the
 *  server was unreachable, the message disappears once the server can be reached. */
export function FormErrors({ problem: thrownProblem }: { problem: Problem | null }) {
  const box = useRef<HTMLDivElement>(null);
  const focusedBefore = useRef<Element | null>(null);
  const problem = thrownProblem?.isOffline && !isServerUnreachable.value ? null : thrownProblem;
  useEffect(() => {
    if (box.current) {
      focusedBefore.current = document.activeElement;
      box.current.focus();
    } else if (document.activeElement === document.body && focusedBefore.current instanceof HTMLElement && focusedBefore.current.isConnected) {
      focusedBefore.current.focus();
    }
  }, [problem]);
  if (problem === null) {
    return null;
  }
  // The list below says the same as the message if there is a single error.
  const isListed = problem.fieldErrors.length === 1 && problem.fieldErrors[0]?.detail === problem.message;
  return (
    <div class="summary" role="alert" tabIndex={-1} ref={box}>
      <h2>{problem.isCorrectable ? t("fault.title") : problem.title || t("failed")}</h2>
      {!isListed && <p>{problem.isFromServer ? t("refused", { text: problem.message }) : problem.message}</p>}
      {problem.resolution && <p>{problem.resolution}</p>}
      <SignInAgain problem={problem} />
      {problem.retryAfterS !== null && <p>{t("wait", { seconds: problem.retryAfterS })}</p>}
      {problem.fieldErrors.length > 0 && (
        <ul>
          {problem.fieldErrors.map((error) => (
            <li key={error.field}>{error.field ? <a href={`#${error.field}`}>{error.detail}</a> : error.detail}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
