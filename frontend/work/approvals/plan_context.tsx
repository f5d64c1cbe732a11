// Beside a proposal: why it has its risk, the record as it is now, how the agent did before, and who must approve.
import { useRequest } from "../../shared/request";
import { Chip } from "../../shared/components/chip";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { number, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { addressOf, may, modelOf } from "../models";
import { Avatar } from "../values/avatar";
import { Facts, isShownWhole, recordOf, subjectsOf } from "./affected_records";
import { plans } from "./live_plans";
import { isStale, type Plan } from "./plan";
import { RecordTitle } from "./record_title";
import { riskOf, riskReasons } from "./risk";

const t = translator("approvals");

const DAYS_MS = 30 * 86_400_000;
const KNOWN = ["deletes", "bulk", "personal_data", "access_rights", "outside_text", "money_out", "state_change", "money_field"];

export function PlanContext({ meta, plan, now_ms }: { meta: Meta; plan: Plan; now_ms: number }) {
  const risk = riskOf(meta, plan);
  const reasons = riskReasons(meta, plan).filter((each) => KNOWN.includes(each));
  const subject = subjectsOf(meta, plan)[0];
  return (
    <aside class="plan-context" aria-label={t("risk")}>
      <section>
        <h3>{t("risk")}</h3>
        <p class="risk-level">
          <span class={`risk-meter ${risk}`} aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          <strong>{t(`level.${risk}`)}</strong>
        </p>
        <ul>
          {reasons.map((each) => (
            <li key={each}>{t(`risk.reason.${each}` as "risk.reason.bulk")}</li>
          ))}
          {reasons.length === 0 && <li>{t("risk.reason.none")}</li>}
        </ul>
      </section>
      {subject && plan.state === "pending" && (
        <section>
          <h3>{t("subject")}</h3>
          <Subject {...{ meta, plan }} model={subject.model.name} id={subject.id} />
        </section>
      )}
      {plan.agent !== null && <Agent {...{ plan, now_ms }} agent={plan.agent} />}
      <section>
        <h3>{t("approvals")}</h3>
        {plan.approvals.map((each) => (
          <p key={each.at} class="approver">
            <Avatar name={each.name ?? "–"} /> {each.name} <Chip tone="good">{t("state.approved")}</Chip>
          </p>
        ))}
        <p class="quiet">{plan.needs > 1 ? t("needs", { n: number(plan.approvals.length), of: number(plan.needs) }) : t("approval.one")}</p>
      </section>
    </aside>
  );
}

function Subject({ meta, plan, model: name, id }: { meta: Meta; plan: Plan; model: string; id: string }) {
  const model = modelOf(meta, name);
  const found = useRequest((signal) => (model ? recordOf(model, id, signal) : Promise.resolve(null)), [name, id, plan.id, isStale(plan)], { keepsPrevious: true });
  if (!model) {
    return null;
  }
  const title = <RecordTitle model={model} of={{ model: name, id }} isBare />;
  return (
    <>
      <dl class="facts">
        <div class="fact">
          <dt>{model.label}</dt>
          <dd>{may(model, "get") ? <a href={addressOf(name, id)}>{title}</a> : title}</dd>
        </div>
      </dl>
      {found.state === "loaded" && found.value && !isShownWhole(meta, plan, model) && <Facts {...{ meta, model, record: found.value }} but={model.shown_as} />}
      {found.state === "loaded" && found.value === null && <p class="quiet">{t("now.gone")}</p>}
    </>
  );
}

function Agent({ plan, agent, now_ms }: { plan: Plan; agent: string; now_ms: number }) {
  const own = (plans.value ?? []).filter((each) => each.agent === agent && now_ms - Date.parse(each.proposed_at) < DAYS_MS);
  const count = (state: string) => number(own.filter((each) => each.state === state).length);
  return (
    <section>
      <h3>{t("agent")}</h3>
      <dl class="facts">
        <div class="fact">
          <dt>{t("agent.name")}</dt>
          <dd>
            <UntrustedText text={agent} />
          </dd>
        </div>
        <div class="fact">
          <dt>{t("agent.for")}</dt>
          <dd>{plan.proposed_by?.person ?? "–"}</dd>
        </div>
        <div class="fact">
          <dt>{t("agent.days")}</dt>
          <dd>{t("agent.counts", { all: number(own.length), done: count("executed"), rejected: count("rejected") })}</dd>
        </div>
      </dl>
    </section>
  );
}
