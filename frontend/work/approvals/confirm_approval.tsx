// Asks for confirmation before an approval that loses records, or that came too fast to have been read.
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { number, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { PlanDetails } from "./plan_details";
import { phraseOf } from "./plan_title";
import { HASTY_S } from "./reading_time";
import type { Plan } from "./plan";
import { PlanSummary } from "./record_title";
import { isDeletion, isReversible } from "./risk";

const t = translator("approvals");
const MAX_RECORDS = 10;

interface Props {
  meta: Meta;
  group: readonly Plan[];
  /** The reason for asking: the risk is high, or the plan was on screen too briefly to be read. */
  confirmReason: "risk" | "haste" | null;
  onSign: () => void;
  onClose: () => void;
}

export function ConfirmApproval({ meta, group, confirmReason, onSign, onClose }: Props) {
  const firstPlan = group[0];
  if (!firstPlan) {
    return null;
  }
  const phrase = phraseOf(meta, firstPlan, group.length);
  const approveLabel = group.length > 1 ? t("again.signs", { n: number(group.length) }) : t("again.sign");
  return (
    <Dialog
      title={confirmReason === "haste" ? t("again.title") : `${phrase}?`}
      variant="wide"
      isOpen={confirmReason !== null}
      onClose={onClose}
      isCautious
      actions={
        <Button variant="ink" onClick={onSign}>
          {isDeletion(firstPlan) ? phrase : approveLabel}
        </Button>
      }
    >
      {confirmReason === "haste" && <p>{t("again.text", { n: number(HASTY_S) })}</p>}
      {confirmReason === "haste" ? (
        <PlanDetails {...{ meta, plan: firstPlan }} count={group.length} />
      ) : (
        <>
          <ul>
            {group.slice(0, MAX_RECORDS).map((plan) => (
              <li key={plan.id}>
                <PlanSummary {...{ meta, plan }} />
              </li>
            ))}
            {group.length > MAX_RECORDS && <li>{t("others", { n: number(group.length - MAX_RECORDS) })}</li>}
            {firstPlan.effects.map((effect) => (
              <li key={effect}>{effect}</li>
            ))}
          </ul>
          {!isReversible(meta, firstPlan) && <p>{t("irreversible")}</p>}
        </>
      )}
    </Dialog>
  );
}
