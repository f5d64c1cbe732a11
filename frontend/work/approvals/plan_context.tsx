// The side panel of a proposal: reasons for its risk, context of the record, the agent's track record, approvals.
import { useRequest } from "../../shared/request";
import { Chip } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { dateTime, number, relativePast, translator } from "../../shared/i18n";
import { type Meta, type Model, run } from "../api";
import { addressOf, fieldOf, mayRun, modelOf } from "../models";
import { Avatar } from "../values/avatar";
import { RecordFields, areAllFieldsShown, loadRecord, affectedRecordsOf } from "./affected_records";
import { plans } from "./live_plans";
import { isExpired, isStale, type Plan } from "./plan";
import { RecordTitle } from "./record_title";
import { isDeletion, riskOf, riskReasons } from "./risk";

const t = translator("approvals");

/** The number of fields that are shown of a record. */
const MAX_FIELDS = 6;
const PERIOD_MS = 30 * 86_400_000;
const KNOWN_REASONS = ["deletes", "bulk", "personal_data", "access_rights", "outside_text", "money_out", "state_change", "money_field"];

export function PlanContext({ meta, plan, now_ms }: { meta: Meta; plan: Plan; now_ms: number }) {
  const risk = riskOf(meta, plan);
  const reasons = riskReasons(meta, plan).filter((riskReason) => KNOWN_REASONS.includes(riskReason));
  const firstRecord = affectedRecordsOf(meta, plan)[0];
  const isDecidable = plan.state === "pending" && !isStale(plan) && !isExpired(plan, now_ms);
  const hasApproved = plan.approvals.some((approval) => approval.name === meta.caller.name);
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
          {reasons.map((reason) => (
            <li key={reason}>
              <Icon name={isSevere(reason) ? "triangle-alert" : "info"} size="s" />
              {t(`risk.reason.${reason}` as "risk.reason.bulk")}
            </li>
          ))}
          {reasons.length === 0 && (
            <li>
              <Icon name="check" size="s" />
              {t("risk.reason.none")}
            </li>
          )}
        </ul>
      </section>
      {firstRecord && plan.state === "pending" && (
        <section>
          <h3>{t("subject")}</h3>
          <RecordContext {...{ meta, plan }} model={firstRecord.model.name} id={firstRecord.id} />
        </section>
      )}
      {plan.agent !== null && <AgentRecord {...{ plan, now_ms }} agent={plan.agent} />}
      <section>
        <h3>{t("approvals")}</h3>
        <ul class="approvers">
          {plan.approvals.map((approval) => (
            <li key={approval.at}>
              <Avatar name={approval.name ?? "–"} />
              <span class="grow">{approval.name}</span>
              <Chip tone="good">{t("state.approved")}</Chip>
            </li>
          ))}
          {isDecidable && !hasApproved && (
            <li>
              <Avatar name={meta.caller.name} />
              <span class="grow">{t("approver.you")}</span>
              <Chip tone="warn">{t("state.pending")}</Chip>
            </li>
          )}
        </ul>
        <p class="quiet">{plan.needs > 1 ? t("needs", { n: number(plan.approvals.length), of: number(plan.needs) }) : t("approval.one")}</p>
        {isDecidable && <p class="quiet">{t("waits.since", { when: dateTime(plan.proposed_at) })}</p>}
      </section>
    </aside>
  );
}

/** Whether the reason gets a warning icon. */
function isSevere(reason: string): boolean {
  return ["deletes", "bulk", "personal_data", "access_rights", "money_out"].includes(reason);
}

/** Shows what the proposal itself does not contain: the record's other fields, its last change, and the number of
 *  records that refer to it. */
function RecordContext({ meta, plan, model: name, id }: { meta: Meta; plan: Plan; model: string; id: string }) {
  const model = modelOf(meta, name);
  const key = [name, id, plan.id, isStale(plan)];
  const recordRequest = useRequest((signal) => (model ? loadRecord(model, id, signal) : Promise.resolve(null)), key, { keepsPrevious: true });
  const historyRequest = useRequest((signal) => (model ? loadHistory(model, id, signal) : Promise.resolve(NO_HISTORY)), key, { keepsPrevious: true });
  if (!model) {
    return null;
  }
  const title = <RecordTitle model={model} recordRef={{ model: name, id }} isBare />;
  const planFields = plan.diff.filter((change) => change.model === name && change.id === id).map((change) => change.field);
  const shownFields = new Set([model.shown_as, ...planFields.filter((planField) => !isDeletion(plan) || !isIdentifying(model, planField))]);
  const { lastChange, related } = historyRequest.state === "loaded" ? historyRequest.value : NO_HISTORY;
  return (
    <>
      <dl class="facts">
        <div class="fact">
          <dt>{model.label}</dt>
          <dd>{mayRun(model, "get") ? <a href={addressOf(name, id)}>{title}</a> : title}</dd>
        </div>
      </dl>
      {recordRequest.state === "loaded" && recordRequest.value && !areAllFieldsShown(meta, plan, model) && <RecordFields {...{ meta, model, record: recordRequest.value }} omittedFields={shownFields} maxFields={MAX_FIELDS} />}
      {recordRequest.state === "loaded" && recordRequest.value === null && <p class="quiet">{t("now.gone")}</p>}
      <dl class="facts">
        {related.map((relation) => (
          <div key={`${relation.model}.${relation.field}`} class="fact">
            <dt>{modelOf(meta, relation.model)?.plural ?? relation.model}</dt>
            <dd>{number(relation.count)}</dd>
          </div>
        ))}
        {lastChange && (
          <div class="fact">
            <dt>{t("last.change")}</dt>
            <dd>
              {lastChange.agent ?? lastChange.by ?? "–"}, {relativePast(lastChange.at)}
            </dd>
          </div>
        )}
      </dl>
    </>
  );
}

/** Whether the field gives context: it is the state, or a reference to a record other than a user. */
function isIdentifying(model: Model, name: string): boolean {
  const field = fieldOf(model, name);
  return name === model.state_field || (field?.kind === "ref" && field.ref !== "user");
}

interface RecordHistory {
  lastChange: { at: string; by: string | null; agent: string | null } | undefined;
  /** The models whose records refer to this one. */
  related: { model: string; field: string; count: number }[];
}

const NO_HISTORY: RecordHistory = { lastChange: undefined, related: [] };

async function loadHistory(model: Model, id: string, signal: AbortSignal): Promise<RecordHistory> {
  const historyEntries = mayRun(model, "history") ? run<NonNullable<RecordHistory["lastChange"]>[]>(model.name, "history", { id }, signal).catch(() => null) : null;
  const relatedRequest = mayRun(model, "related") ? run<RecordHistory["related"]>(model.name, "related", { id, limit: 1 }, signal).catch(() => null) : null;
  const [entries, related] = await Promise.all([historyEntries, relatedRequest]);
  return {
    lastChange: entries?.value.toSorted((entry, otherEntry) => otherEntry.at.localeCompare(entry.at))[0],
    related: (related?.value ?? []).filter((entry) => entry.count > 0),
  };
}

function AgentRecord({ plan, agent, now_ms }: { plan: Plan; agent: string; now_ms: number }) {
  const agentPlans = (plans.value ?? []).filter((plan) => plan.agent === agent && now_ms - Date.parse(plan.proposed_at) < PERIOD_MS);
  const count = (state: string) => number(agentPlans.filter((agentPlan) => agentPlan.state === state).length);
  return (
    <section>
      <h3>{t("agent")}</h3>
      <dl class="facts">
        <div class="fact">
          <dt>{t("agent.name")}</dt>
          <dd>
            {plan["agent_token"] ? (
              <a href={`/agents?agent=${encodeURIComponent(String(plan["agent_token"]))}`}>
                <UntrustedText text={agent} />
              </a>
            ) : (
              <UntrustedText text={agent} />
            )}
          </dd>
        </div>
        <div class="fact">
          <dt>{t("agent.for")}</dt>
          <dd>{plan.proposed_by?.person ?? "–"}</dd>
        </div>
        <div class="fact">
          <dt>{t("agent.days")}</dt>
          <dd>
            {t("agent.proposed", { all: number(agentPlans.length) })}
            <br />
            {t("agent.decided", { done: count("executed"), rejected: count("rejected") })}
          </dd>
        </div>
      </dl>
    </section>
  );
}
