// All details of a plan before its approval: who, why, and every value before and after.
import { Chip, type Tone } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { escapeInvisible } from "../../shared/invisible_characters";
import { date, joinWords, relativePast, number, translator, relativeFuture } from "../../shared/i18n";
import type { Meta, Model } from "../api";
import { fieldOf, mayRun, modelOf, nounOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { modelIcon } from "../shell/model_icons";
import { AgentAvatar, Avatar } from "../values/avatar";
import { type Change, Changes } from "../record/changes";
import { TextChange } from "../record/text_change";
import { RecordTitle } from "./record_title";
import { type Difference, isExpired, isStale, type Plan } from "./plan";
import { AffectedRecords } from "./affected_records";
import { DeletedRecord } from "./deleted_record";
import { kindOf, NAME_PLACEHOLDER, PlanSentence } from "./plan_title";
import { isDeletion, isReversible, riskOf } from "./risk";

const t = translator("approvals");

const TONES: Record<string, Tone | undefined> = { executed: "good", failed: "bad", rejected: "bad", pending: "warn" };

const CHANGE_TONES: Record<string, Tone | undefined> = { deleted: "bad", created: "good", changed: undefined };
const RISK_TONES: Record<string, Tone | undefined> = { high: "bad", medium: "warn", low: "good" };

export function PlanState({ plan, now_ms }: { plan: Plan; now_ms: number }) {
  const state = isStale(plan) ? "stale" : isExpired(plan, now_ms) ? "expired" : plan.state;
  return <Chip tone={TONES[state]}>{t(`state.${state}` as "state.pending")}</Chip>;
}

/** Who proposed it, when, and its risk. */
export function PlanHead({ meta, plan, now_ms, count = 1 }: { meta: Meta; plan: Plan; now_ms: number; count?: number }) {
  const risk = riskOf(meta, plan);
  return (
    <header class="plan-head">
      <p class="plan-facts">
        {plan.state === "pending" && !isStale(plan) ? <Chip plain tone={RISK_TONES[risk]}>{t(`risk.${risk}`)}</Chip> : <PlanState plan={plan} now_ms={now_ms} />}
        <Chip plain>{kindOf(meta, plan)}</Chip>
        <span class="quiet">
          {t("proposed", { when: relativePast(plan.proposed_at, now_ms) })}
          {plan.state === "pending" && !isStale(plan) && ` · ${isExpired(plan, now_ms) ? t("expired") : t("expires", { when: relativeFuture(plan.expires_at, now_ms) })}`}
        </span>
        {plan.needs > 1 && <span class="quiet">{t("needs", { n: number(plan.approvals.length), of: number(plan.needs) })}</span>}
      </p>
      <h2 id="plan-title">
        <PlanSentence {...{ meta, plan, count }} />
      </h2>
      <p class="plan-who">
        {plan.agent ? <AgentAvatar /> : <Avatar name={plan.proposed_by?.person ?? "–"} />}
        <span>
          <Proposer {...{ plan }} />
        </span>
      </p>
    </header>
  );
}

/** The agent and the person that it acts for, or only the person, each name in bold. */
function Proposer({ plan }: { plan: Plan }) {
  const person = plan.proposed_by?.person ?? "–";
  const name = (text: string) => (
    <strong>
      <UntrustedText text={text} />
    </strong>
  );
  if (!plan.agent) {
    return name(person);
  }
  const [textBefore = "", textBetween = "", textAfter = ""] = t("by.agent", { agent: NAME_PLACEHOLDER, person: NAME_PLACEHOLDER }).split(NAME_PLACEHOLDER);
  return (
    <>
      {textBefore}
      {name(plan.agent)}
      {textBetween}
      {name(person)}
      {textAfter}
    </>
  );
}

export function PlanDetails({ meta, plan, count = 1 }: { meta: Meta; plan: Plan; count?: number }) {
  // A stale plan has its own message above.
  const reason = plan.reason ?? (isStale(plan) ? null : plan.error);
  const isOpen = plan.state === "pending" && !isStale(plan);
  const records = groupByRecord(plan.diff);
  return (
    <div class="plan-details">
      {isStale(plan) && (
        <p class="notice">
          {t("stale")} {t("stale.next")}
        </p>
      )}
      {plan.why ? (
        <blockquote class="untrusted" aria-label={t("why")}>
          <Icon name="message-square" />
          <div>
            <p>
              <TextChange parts={[{ text: plan.why, isChanged: true }]} />
            </p>
            <small>{t("why.untrusted")}</small>
          </div>
        </blockquote>
      ) : (
        plan.agent && <p class="quiet">{t("why.none")}</p>
      )}
      {isOpen && !isReversible(meta, plan) && (
        <p class="irreversible">
          <Icon name="triangle-alert" />
          <span>
            <strong>{t("irreversible")}</strong> {isDeletion(plan) && deletionText(meta, plan, count)}
          </span>
        </p>
      )}
      <AffectedRecords {...{ meta, plan }} />
      <section>
        <h3>{t("changes")}</h3>
        {records.length === 0 && <p class="quiet">{t("changes.none")}</p>}
        {records.map(([key, differences]) => {
          const firstDifference = differences[0];
          const model = modelOf(meta, firstDifference?.model ?? "");
          const isNew = differences.every((difference) => difference.before === null);
          const label = model?.label ?? firstDifference?.model ?? "";
          return (
            <div key={key} class="record-changes">
              {records.length > 1 && <h4>{isNew || !firstDifference ? t("step.new", { model: label }) : <RecordTitle {...{ model, recordRef: firstDifference }} />}</h4>}
              {isDeletion(plan) && differences.every((difference) => difference.after === null) ? (
                <DeletedRecord {...{ meta, model }} changes={changesOf(model, differences)} />
              ) : (
                <Changes meta={meta} headings={[t("field"), t("diff.now"), t("diff.after")]} changes={changesOf(model, differences)} />
              )}
            </div>
          );
        })}
      </section>
      <Effects {...{ meta, plan }} />
      {reason && (
        <section>
          <h3>{t("reason")}</h3>
          <p>
            <UntrustedText text={reason} />
          </p>
        </section>
      )}
      <details>
        <summary>{t("command")}</summary>
        <pre class="code-box" tabIndex={0}>
          {plan.command} <UntrustedText text={JSON.stringify(plan.input, null, 2)} />
        </pre>
        <p class="small quiet hash-line">{t("digest", { digest: plan.digest })}</p>
      </details>
    </div>
  );
}

/** The records that a deletion deletes, in a sentence: the records that the plan names, and records deleted with
 *  them. */
function deletionText(meta: Meta, plan: Plan, count: number): string {
  const ownKeys = new Set(plan.diff.map((change) => `${change.model}/${change.id}`));
  const alsoDeleted = (plan.affected ?? []).filter((record) => record.change === "deleted" && !ownKeys.has(`${record.model}/${record.id}`));
  const records = ownKeys.size * count;
  if (records > 1 || alsoDeleted.length === 0) {
    return records > 1 ? t("irreversible.deletes", { n: number(records) }) : t("irreversible.delete");
  }
  const names = [...new Set(alsoDeleted.map((record) => record.model))];
  const counts = names.map((name) => {
    const n = alsoDeleted.filter((record) => record.model === name).length;
    const model = modelOf(meta, name);
    return `${number(n)} ${nounOf((n === 1 ? model?.label : model?.plural) ?? name)}`;
  });
  return t("irreversible.along", { others: joinWords(counts) });
}

/** The effects on other records: by the names of the records if the API sends them, or else in words. */
function Effects({ meta, plan }: { meta: Meta; plan: Plan }) {
  // The API names the records of the proposal itself first.
  const ownKeys = new Set(plan.diff.map((change) => `${change.model}/${change.id}`));
  const otherRecords = (plan.affected ?? []).filter((record) => !ownKeys.has(`${record.model}/${record.id}`));
  if (plan.effects.length === 0 && otherRecords.length === 0) {
    return null;
  }
  return (
    <section class="effects">
      <div class="effects-head">
        <h3>{t("effects")}</h3>
        {otherRecords.length > 0 &&
          plan.effects.map((effect) => (
            <p key={effect} class="small quiet">
              <UntrustedText text={effect} />
            </p>
          ))}
      </div>
      <ul class="effect-list">
        {otherRecords.map((affectedRecord) => {
          const model = modelOf(meta, affectedRecord.model);
          return (
            <li key={affectedRecord.id}>
              <Icon name={modelIcon(model)} />
              <strong class="cut" title={affectedRecord.name ? escapeInvisible(affectedRecord.name) : undefined}>{affectedRecord.name ? <UntrustedText text={affectedRecord.name} /> : <RecordTitle model={model} recordRef={affectedRecord} isBare />}</strong>
              <span class="quiet">
                {model?.label}
                <AffectedDate {...{ model }} id={affectedRecord.id} />
              </span>
              <span class="right">
                <Chip tone={CHANGE_TONES[affectedRecord.change]}>{t(affectedRecord.change in CHANGE_TONES ? (`change.${affectedRecord.change}` as "change.changed") : "change.changed")}</Chip>
              </span>
            </li>
          );
        })}
        {otherRecords.length === 0 &&
          plan.effects.map((effect) => (
            <li key={effect}>
              <Icon name="git-branch" />
              <UntrustedText text={effect} />
            </li>
          ))}
      </ul>
    </section>
  );
}

/** The most important date of a record: its due date, or else its first date. */
function AffectedDate({ model, id }: { model: Model | undefined; id: string }) {
  const field = model?.fields.find((field) => field.kind === "date" && !field.masked);
  const day = field && model && mayRun(model, "list") && referencedRecord(model, id).value?.[field.name];
  return day ? <>, {date(String(day))}</> : null;
}

function changesOf(model: Model | undefined, differences: readonly Difference[]): Change[] {
  return differences.map(({ field, before, after }) => ({ field: fieldOf(model, field), name: field, before, after }));
}

function groupByRecord(diff: readonly Difference[]): [string, Difference[]][] {
  const byKey = new Map<string, Difference[]>();
  for (const difference of diff) {
    const key = `${difference.model}/${difference.id}`;
    byKey.set(key, [...(byKey.get(key) ?? []), difference]);
  }
  return [...byKey];
}
