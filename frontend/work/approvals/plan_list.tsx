// The list of proposals by risk, newest first: the change, the record, who proposed it and when.
import { Icon } from "../../shared/components/icon";
import { Chip } from "../../shared/components/chip";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { number, translator } from "../../shared/i18n";
import { shortPast } from "../relative_time";
import type { Meta } from "../api";
import { isStale, type Plan } from "./plan";
import { PlanState } from "./plan_details";
import { kindOf, phraseOf } from "./plan_title";
import { PlanSummary } from "./record_title";
import { riskOf, RISKS } from "./risk";

const t = translator("approvals");

interface Props {
  meta: Meta;
  groups: readonly Plan[][];
  current: string | undefined;
  now_ms: number;
  onChoose: (plan: Plan) => void;
  onOpen: (plan: Plan) => void;
}

export function PlanList({ meta, groups, current, now_ms, onChoose, onOpen }: Props) {
  return (
    <nav class="plans" aria-label={t("list")}>
      {RISKS.map((risk) => {
        const riskGroups = groups.filter(([firstPlan]) => firstPlan && riskOf(meta, firstPlan) === risk);
        return riskGroups.length > 0 ? (
          <section key={risk}>
            <h2 class="risk-head">
              {t(`risk.${risk}`)}
              <span>{number(riskGroups.reduce((sum, riskGroup) => sum + riskGroup.length, 0))}</span>
            </h2>
            <ul>
              {riskGroups.map((group) => {
                const plan = group[0];
                return plan && <PlanItem key={plan.id} {...{ meta, plan, now_ms, onChoose, onOpen, risk }} count={group.length} isCurrent={plan.id === current} />;
              })}
            </ul>
          </section>
        ) : null;
      })}
    </nav>
  );
}

interface PlanItemProps extends Pick<Props, "meta" | "now_ms" | "onChoose" | "onOpen"> {
  plan: Plan;
  risk: string;
  count: number;
  isCurrent: boolean;
}

function PlanItem({ meta, plan, risk, count, isCurrent, now_ms, onChoose, onOpen }: PlanItemProps) {
  const handleKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && isCurrent) {
      event.preventDefault();
      onOpen(plan);
    }
  };
  return (
    <li>
      <button type="button" class={`plan ${risk}`} aria-current={isCurrent} data-command={plan.command} onKeyDown={handleKeyDown} onClick={() => onChoose(plan)}>
        <span class="plan-line">
          <strong>{phraseOf(meta, plan, count)}</strong>
          <time dateTime={plan.proposed_at}>{shortPast(plan.proposed_at, now_ms)}</time>
        </span>
        <span class="about">
          <PlanSummary {...{ meta, plan }} />
        </span>
        <span class="plan-line quiet">
          <span class="plan-by">
            <Icon name={plan.agent ? "bot" : "user"} size="s" />
            <span>
              <UntrustedText text={plan.agent ?? plan.proposed_by?.person ?? "–"} /> · {kindOf(meta, plan)}
            </span>
          </span>
          {count > 1 && <Chip plain>{t("same", { n: number(count) })}</Chip>}
          {(plan.state !== "pending" || isStale(plan)) && <PlanState plan={plan} now_ms={now_ms} />}
        </span>
      </button>
    </li>
  );
}
