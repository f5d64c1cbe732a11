// The proposals for a record that wait for approval, as items of its timeline.
import { LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { dateTime, translator } from "../../shared/i18n";
import { type Meta, type Model, run } from "../api";
import { isStale, type Plan } from "../approvals/plan";
import { phraseOf } from "../approvals/plan_title";
import { mayRun, modelOf } from "../models";
import { AgentAvatar, Avatar } from "../values/avatar";
import { eventTime } from "./event_time";

const t = translator("record");

const MAX_PLANS = 100;

/** The pending proposals that this person may see and that change the record, newest first, among the newest of all. */
export async function loadWaitingPlans(meta: Meta, model: Model, id: string, signal: AbortSignal): Promise<Plan[]> {
  const plan = modelOf(meta, "plan");
  if (!plan || !mayRun(plan, "list")) {
    return [];
  }
  const filter = [{ field: "state", op: "eq", value: "pending" }];
  const order = [{ field: "proposed_at", dir: "desc" }];
  const waitingPlans = (await run<Plan[]>("plan", "list", { filter, order, limit: MAX_PLANS }, signal)).value;
  const isAbout = (plan: Plan) => (plan.target?.model === model.name && plan.target.id === id) || plan.diff.some((change) => change.model === model.name && change.id === id);
  return waitingPlans.filter(isAbout);
}

export function WaitingPlan({ meta, plan }: { meta: Meta; plan: Plan }) {
  const person = plan.proposed_by?.person ?? t("history.someone");
  return (
    <li>
      {plan.agent === null ? <Avatar name={person} /> : <AgentAvatar />}
      <div>
        <p>
          <strong>{plan.agent ?? person}</strong>
          {plan.agent !== null && plan.proposed_by?.person && ` ${t("history.for", { name: plan.proposed_by.person })}`} {t("history.did.propose", { action: phraseOf(meta, plan) })}{" "}
          <time class="quiet" dateTime={plan.proposed_at} title={dateTime(plan.proposed_at)}>
            {eventTime(plan.proposed_at)}
          </time>
        </p>
        <p class="event-change">
          <Chip tone="warn">{t(isStale(plan) ? "history.stale" : "history.waiting")}</Chip>
          <LinkButton tight href={`/approvals?plan=${encodeURIComponent(plan.id)}`}>
            {t("history.review")}
          </LinkButton>
        </p>
      </div>
    </li>
  );
}
