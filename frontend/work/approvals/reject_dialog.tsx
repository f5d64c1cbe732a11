// The dialog that asks for the reason of a rejection, which is required. What is typed stays in this tab until the proposal is decided.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Field } from "../../shared/components/field";
import { number, translator } from "../../shared/i18n";

const t = translator("approvals");

const storageKey = (plan: string) => `reason:${plan}`;

/** Delete the typed reason for a proposal that is decided. */
export function dropReason(plan: string): void {
  sessionStorage.removeItem(storageKey(plan));
}

interface Props {
  /** The first proposal. */
  plan: string;
  count: number;
  /** The initial text of the reason. */
  reason?: string;
  isOpen: boolean;
  isBusy: boolean;
  /** Whether the last attempt did not reach the service. */
  isUnsent: boolean;
  onReject: (reason: string) => void;
  onClose: () => void;
}

export function RejectDialog({ plan, count, reason: initialReason = "", isOpen, isBusy, isUnsent, onReject, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [isMissing, setMissing] = useState(false);
  useEffect(() => setReason(sessionStorage.getItem(storageKey(plan)) ?? initialReason), [initialReason, isOpen, plan]);
  const changeReason = (text: string) => {
    setReason(text);
    sessionStorage.setItem(storageKey(plan), text);
  };
  const submit = () => {
    if (reason.trim()) {
      setMissing(false);
      onReject(reason.trim());
    } else {
      setMissing(true);
      document.getElementById("reject-reason")?.focus();
    }
  };
  return (
    <Dialog
      title={count > 1 ? t("reject.titles", { n: number(count) }) : t("reject.title")}
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <Button variant="risky" busy={isBusy} onClick={submit}>
          {t("reject")}
        </Button>
      }
    >
      {isUnsent && (
        <p class="notice" role="alert">
          {t("reject.unsent")}
        </p>
      )}
      <Field
        name="reject-reason"
        label={t("reject.reason")}
        help={t("reject.help")}
        error={isMissing ? t("reject.needed") : undefined}
        required
      >
        {(controlAttributes) => <textarea {...controlAttributes} value={reason} maxLength={1000} onInput={(event) => changeReason(event.currentTarget.value)} />}
      </Field>
    </Dialog>
  );
}
