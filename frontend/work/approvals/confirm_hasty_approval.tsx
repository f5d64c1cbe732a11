// Shows a plan a second time before it is approved, when the approval came too fast to have been read.
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { number, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { PlanDetails } from "./plan_details";
import { HASTY_S } from "./reading_time";
import type { Plan } from "./plan";

const t = translator("approvals");

interface Props {
  meta: Meta;
  group: readonly Plan[];
  now_ms: number;
  isOpen: boolean;
  onSign: () => void;
  onClose: () => void;
}

export function ConfirmHastyApproval({ meta, group, now_ms, isOpen, onSign, onClose }: Props) {
  const first = group[0];
  return (
    <Dialog
      title={t("again.title")}
      look="wide"
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <Button look="strong" onClick={onSign}>
          {group.length > 1 ? t("again.signs", { n: number(group.length) }) : t("again.sign")}
        </Button>
      }
    >
      <p>{t("again.text", { n: number(HASTY_S) })}</p>
      {first && <PlanDetails {...{ meta, plan: first, now_ms }} />}
    </Dialog>
  );
}
