// The dialog for a decision on a field of a connected table. Showing more to agents needs a confirmation.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { FormErrors, TextField } from "../../shared/components/field";
import { translator } from "../../shared/i18n";
import { Problem } from "../../shared/problem";
import { type Choice, type Decision, isWidened, type MappedField, sightText } from "./decisions";

const t = translator("data");

const FREE_TEXT = "TEXT";
const MAX_REASON_LENGTH = 500;

interface Props {
  field: MappedField;
  /** The name of the field for people. */
  name: string;
  choice: Choice;
  /** The reason of the decision before. */
  reason: string;
  onDecide: (decision: Decision) => Promise<void>;
  onReload: () => void;
  onClose: () => void;
}

export function DecideDialog({ field, name, choice: firstChoice, reason: firstReason, onDecide, onReload, onClose }: Props) {
  const [choice, setChoice] = useState(firstChoice);
  const [label, setLabel] = useState(field.after_restart.label ?? FREE_TEXT);
  const [reason, setReason] = useState(firstReason);
  const [isConfirmed, setConfirmed] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const isWide = isWidened(field, choice);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await onDecide({ choice, label: label.trim(), reason: reason.trim(), isConfirmed: isWide && isConfirmed });
    } catch (error) {
      setProblem(Problem.from(error));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={t("decide.title", { field: name })}
      isOpen
      onClose={onClose}
      actions={
        <Button type="submit" form="decide-form" variant={isWide ? "risky" : "strong"} busy={isBusy}>
          {t(isWide && choice === "clear" ? "decide.show" : "decide.do")}
        </Button>
      }
    >
      <form id="decide-form" class="stack" onSubmit={(event) => void submit(event)}>
        <FormErrors problem={problem} />
        {problem && (
          <div>
            <Button tight onClick={onReload}>
              {t("decide.reload")}
            </Button>
          </div>
        )}
        <p>{t("decide.now", { sight: sightText(field.after_restart) })}</p>
        <div class="segments" role="group" aria-label={t("decision")}>
          {field.choices.map((each) => (
            <button key={each} type="button" aria-pressed={each === choice} onClick={() => setChoice(each)}>
              {t(`choice.${each}`)}
            </button>
          ))}
        </div>
        <p class="quiet">{t(`choice.${choice}.text`)}</p>
        {choice === "personal" && (
          <TextField name="decide-label" label={t("decide.label")} help={t("decide.label.help")} required maxLength={20} autocapitalize="none" autocomplete="off" value={label} onInput={(event) => setLabel(event.currentTarget.value.toUpperCase())} />
        )}
        <TextField name="decide-reason" label={t("decide.reason")} help={t("decide.reason.help")} required maxLength={MAX_REASON_LENGTH} autocomplete="off" autofocus value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        {isWide && (
          <label class="notice warn confirm-values">
            <input type="checkbox" name="decide-confirmed" required checked={isConfirmed} onChange={(event) => setConfirmed(event.currentTarget.checked)} />
            <span>{t(choice === "clear" ? "decide.confirm" : "decide.confirm.personal")}</span>
          </label>
        )}
      </form>
    </Dialog>
  );
}
