// The dialog that asks for the reason of a rejection, which is required.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Field } from "../../shared/components/field";
import { number, translator } from "../../shared/i18n";

const t = translator("approvals");

interface Props {
  count: number;
  /** The initial text of the reason. */
  reason?: string;
  isOpen: boolean;
  onReject: (reason: string) => void;
  onClose: () => void;
}

export function RejectDialog({ count, reason: given = "", isOpen, onReject, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [isMissing, setMissing] = useState(false);
  useEffect(() => setReason(given), [given, isOpen]);
  const submit = () => {
    if (reason.trim()) {
      setReason("");
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
        <Button look="risky" onClick={submit}>
          {t("reject")}
        </Button>
      }
    >
      <Field
        name="reject-reason"
        label={t("reject.reason")}
        help={t("reject.help")}
        fault={isMissing ? t("reject.needed") : undefined}
        required
      >
        {(given) => <textarea {...given} value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />}
      </Field>
    </Dialog>
  );
}
