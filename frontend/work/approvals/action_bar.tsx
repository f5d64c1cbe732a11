// The buttons for deciding on a proposal, always visible.
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { number, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { approvalStatistics, HASTY_S } from "./reading_time";
import type { Plan } from "./plan";
import { isDeletion, riskOf } from "./risk";

const t = translator("approvals");

interface Props {
  meta: Meta;
  group: readonly Plan[];
  isBusy: boolean;
  onSign: (() => void) | null;
  onReject: () => void;
  onRedo: (() => void) | null;
}

function approveLabel(meta: Meta, group: readonly Plan[]): string {
  const firstPlan = group[0];
  if (group.length > 1) {
    return t("approve.all", { n: number(group.length) });
  }
  return firstPlan && isDeletion(firstPlan) ? t("approve.delete") : firstPlan && riskOf(meta, firstPlan) === "high" ? t("approve.dialog") : t("approve");
}

export function ActionBar({ meta, group, isBusy, onSign, onReject, onRedo }: Props) {
  const { hasty, count } = approvalStatistics.value;
  return (
    <div class="action-bar">
      {hasty > 0 && <p class="notice small">{t("hasty", { n: number(hasty), of: number(count), seconds: number(HASTY_S) })}</p>}
      {onSign && (
        <Button id="approve" variant="ink" busy={isBusy} onClick={onSign}>
          <Icon name="check" size="s" />
          {approveLabel(meta, group)}
          <kbd>A</kbd>
        </Button>
      )}
      <Button id="reject" onClick={onReject}>
        <Icon name="x" size="s" />
        {t("reject.open")}
        <kbd>R</kbd>
      </Button>
      {onRedo && (
        <Button id="redo" variant="plain" onClick={onRedo}>
          <Icon name="pencil" size="s" />
          {t("redo")}
          <kbd>E</kbd>
        </Button>
      )}
    </div>
  );
}
