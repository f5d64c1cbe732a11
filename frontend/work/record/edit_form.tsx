// The form that creates or changes a record. Input is stored as a draft until it is saved; errors are shown at the fields.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { FormErrors } from "../../shared/components/field";
import { registerShortcut } from "../../shared/shortcuts";
import { Problem } from "../../shared/problem";
import { runOrPropose, type Field, type Meta, type Model, type Row } from "../api";
import { fieldOf, workflowField, mayRun, nounOf } from "../models";
import { parseText, valueToText } from "../values/field_text";
import type { EditConflict } from "./conflict";
import { type Texts, useDraft } from "./draft";
import { editRecord } from "./edit_request";
import { FormFields } from "./form_fields";
import { Properties } from "./properties";
import { withField, type SaveResult, save } from "./save";
import { translator } from "../../shared/i18n";

const t = translator("record");

interface Props {
  meta: Meta;
  model: Model;
  /** The record to change, or null to create one. */
  base: Row | null;
  /** A prefix of the fields' names and the draft's key, if the page has another form with the same fields. */
  prefix?: string;
  /** Fixed values of a new record, which are not asked for. */
  fixedValues?: Readonly<Record<string, unknown>>;
  /** Whether to focus the first field. */
  hasFocus?: boolean;
  /** The fields hidden from this person, on a record's page. There, fields are opened one by one. */
  denied?: readonly string[];
  /** Initial text of a new record's fields. */
  initialTexts?: Texts;
  onSaved: (row: Row) => void;
  onProposed: (planId: string) => void;
  onConflict?: (conflict: EditConflict) => void;
}

export function EditForm({ meta, model, base, prefix = "", fixedValues = {}, hasFocus = false, denied, initialTexts = {}, onSaved, onProposed, onConflict }: Props) {
  const draft = useDraft([`${prefix}${model.name}`, base?.id ?? "new", ...Object.values(fixedValues)].join("/"), initialTexts);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const fields = formFields(model, base).filter((formField) => !(formField.name in fixedValues));
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (hasFocus) {
      form.current?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    }
  }, []);
  const [openFields, setOpenFields] = useState<ReadonlySet<string>>(new Set());
  const canSave = base ? mayRun(model, "update") && fields.some((field) => !field.readonly) : true;
  const openField = (name: string) => {
    setOpenFields((openBefore) => new Set([...openBefore, name]));
    setTimeout(() => document.getElementById(name)?.focus(), 0);
  };
  useEffect(() => {
    if (!denied || !canSave) {
      return undefined;
    }
    const openAll = () => {
      setOpenFields(new Set(fields.filter((field) => !field.readonly && !(field.masked && base?.[field.name] !== null)).map((field) => field.name)));
      setTimeout(() => form.current?.querySelector<HTMLElement>("input, select, textarea")?.focus(), 0);
    };
    editRecord.value = openAll;
    const unregister = registerShortcut({ key: "e", does: t("edit"), run: openAll });
    return () => (unregister(), (editRecord.value = null));
  }, [denied === undefined, canSave]);
  const setText = (name: string, text: string) => {
    draft.set(name, text);
    setOpenFields((openBefore) => (openBefore.has(name) ? openBefore : new Set([...openBefore, name])));
  };
  const isChanged = Object.entries(draft.texts).some(([name, text]) => differs(fieldOf(model, name), base, text));
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const parsedInputs = parseInputs(model, base, draft.texts);
    if ("problem" in parsedInputs) {
      setProblem(withPrefix(parsedInputs.problem, prefix));
      return;
    }
    setBusy(true);
    const result = base ? await save(model, base, parsedInputs.values) : await create(model, { ...parsedInputs.values, ...fixedValues });
    setBusy(false);
    if (result.state === "refused") {
      setProblem(withPrefix(result.problem, prefix));
      return;
    }
    setProblem(null);
    if (result.state === "conflict") {
      onConflict?.({ base: base ?? result.serverRecord, serverRecord: result.serverRecord, ownChanges: parsedInputs.values });
      return;
    }
    draft.drop();
    if (result.state === "saved") {
      onSaved(result.row);
    } else {
      onProposed(result.planId);
    }
  };
  return (
    <form class="stack" ref={form} onSubmit={(event) => void submit(event)} aria-label={base ? model.label : t("new", { model: nounOf(model.label) })} noValidate>
      <FormErrors problem={problem} />
      {draft.isRestored && isChanged && <p class="notice">{t("draft")}</p>}
      {base && denied ? (
        <Properties {...{ meta, model, fields, denied, problem, openFields }} record={base} texts={draft.texts} onOpen={openField} onText={setText} onKeep={draft.unset} />
      ) : (
        <FormFields {...{ meta, fields, base, prefix, problem }} texts={draft.texts} onText={draft.set} onKeep={draft.unset} />
      )}
      {canSave && (!denied || isChanged || openFields.size > 0) && (
        <div class="row save-bar">
          <Button type="submit" variant="strong" busy={isBusy} disabled={base !== null && !isChanged}>
            {t(base ? "save" : "create")}
          </Button>
          {(isChanged || openFields.size > 0) && (
            <Button variant="plain" onClick={() => (draft.drop(), setOpenFields(new Set()), setProblem(null))}>
              {t("discard")}
            </Button>
          )}
          {isChanged && <span class="quiet small">{t("unsaved")}</span>}
        </div>
      )}
    </form>
  );
}

/** The problem with the prefix added to the names of its fields. */
function withPrefix(problem: Problem, prefix: string): Problem {
  const errors = problem.fieldErrors.map(({ field, detail }) => ({ parameter: field && prefix + field, detail }));
  return prefix ? new Problem(problem.status, { detail: problem.message, errors }, problem.retryAfterS) : problem;
}

/** The fields of the form. A new record has no fields that the system sets, and none that the person may not write. */
function formFields(model: Model, base: Row | null): Field[] {
  if (base === null) {
    return model.fields.filter((field) => !field.readonly && field.name !== workflowField(model)?.name);
  }
  return mayRun(model, "update") ? model.fields : model.fields.map((field) => ({ ...field, readonly: true }));
}

function differs(field: Field | undefined, base: Row | null, text: string): boolean {
  return field !== undefined && (field.masked ? text !== "" : text !== valueToText(field, base?.[field.name]));
}

type ParsedInputs = { problem: Problem } | { values: Record<string, unknown> };

function parseInputs(model: Model, base: Row | null, texts: Record<string, string>): ParsedInputs {
  const values: Record<string, unknown> = {};
  const errors: { parameter: string; detail: string }[] = [];
  for (const [name, text] of Object.entries(texts)) {
    const field = fieldOf(model, name);
    if (field && differs(field, base, text)) {
      const parsedValue = parseText(field, text);
      if ("error" in parsedValue) {
        errors.push({ parameter: name, detail: parsedValue.error });
      } else {
        values[name] = parsedValue.value;
      }
    }
  }
  return errors.length ? { problem: new Problem(0, { detail: errors[0]?.detail, errors }) } : { values };
}

async function create(model: Model, values: Record<string, unknown>): Promise<SaveResult> {
  try {
    const result = await runOrPropose<Row>(model.name, "create", values);
    return result.isDone ? { state: "saved", row: result.value } : { state: "proposed", planId: result.planId };
  } catch (error) {
    return { state: "refused", problem: withField(Problem.from(error), model) };
  }
}
