// All details of a plan before its approval: who, why, and every value before and after.
import { Chip, type Tone } from "../../shared/components/chip";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { relativePast, number, translator, relativeFuture } from "../../shared/i18n";
import type { Meta } from "../api";
import { addressOf, fieldOf, modelOf } from "../models";
import { Changes } from "../record/changes";
import { TextChange } from "../record/text_change";
import { RecordTitle } from "./record_title";
import { type Difference, isExpired, isStale, type Plan } from "./plan";
import { AffectedRecords } from "./affected_records";

const t = translator("approvals");

const TONES: Record<string, Tone | undefined> = { executed: "good", failed: "bad", rejected: "bad", pending: "warn" };

export function PlanState({ plan, now_ms }: { plan: Plan; now_ms: number }) {
  const state = isStale(plan) ? "stale" : isExpired(plan, now_ms) ? "expired" : plan.state;
  return <Chip tone={TONES[state]}>{t(`state.${state}` as "state.pending")}</Chip>;
}

export function PlanDetails({ meta, plan, now_ms }: { meta: Meta; plan: Plan; now_ms: number }) {
  const target = plan.target?.model && plan.target.id ? plan.target : null;
  // That it is overtaken is said in words above.
  const reason = plan.reason ?? (isStale(plan) ? null : plan.error);
  return (
    <div class="stack">
      <p class="row">
        <PlanState plan={plan} now_ms={now_ms} />
        <span>
          <UntrustedText text={t(plan.agent ? "by.agent" : "by.person", { agent: plan.agent ?? "–", person: plan.proposed_by?.person ?? "–" })} />
        </span>
        {plan.needs > 1 && <span>{t("needs", { n: number(plan.approvals.length), of: number(plan.needs) })}</span>}
      </p>
      <p class="small quiet">
        {t("proposed", { when: relativePast(plan.proposed_at, now_ms) })}
        {plan.state === "pending" &&
          !isStale(plan) &&
          ` · ${isExpired(plan, now_ms) ? t("expired") : t("expires", { when: relativeFuture(plan.expires_at, now_ms) })}`}
        {target && (
          <>
            {" · "}
            <a href={addressOf(target.model ?? "", target.id ?? "")}>{t("record")}</a>
          </>
        )}
      </p>
      {isStale(plan) && (
        <p class="notice">
          {t("stale")} {t("stale.next")}
        </p>
      )}
      <section class="stack tight">
        <h3>{t("why")}</h3>
        {plan.why ? (
          <blockquote class="untrusted">
            <p>
              <TextChange parts={[{ text: plan.why, isChanged: true }]} />
            </p>
            <footer class="small">{t("why.untrusted")}</footer>
          </blockquote>
        ) : (
          <p class="quiet">{t("why.none")}</p>
        )}
      </section>
      <AffectedRecords {...{ meta, plan }} />
      <section class="stack tight">
        <h3>{t("changes")}</h3>
        {plan.diff.length === 0 && <p class="quiet">{t("changes.none")}</p>}
        {byRecord(plan.diff).map(([key, several]) => {
          const first = several[0];
          const model = modelOf(meta, first?.model ?? "");
          const isNew = several.every((each) => each.before === null);
          const label = model?.label ?? first?.model ?? "";
          return (
            <div key={key} class="stack tight">
              <h4>{isNew || !first ? t("step.new", { model: label }) : <RecordTitle {...{ model, of: first }} />}</h4>
              <Changes
                meta={meta}
                changes={several.map(({ field, before, after }) => ({
                  field: fieldOf(model, field),
                  name: field,
                  before,
                  after,
                }))}
              />
            </div>
          );
        })}
      </section>
      {plan.effects.length > 0 && (
        <section class="effects stack tight">
          <h3>{t("effects")}</h3>
          <ul>
            {plan.effects.map((each) => (
              <li key={each}>
                <UntrustedText text={each} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {reason && (
        <section class="stack tight">
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

function byRecord(diff: readonly Difference[]): [string, Difference[]][] {
  const found = new Map<string, Difference[]>();
  for (const each of diff) {
    const key = `${each.model}/${each.id}`;
    found.set(key, [...(found.get(key) ?? []), each]);
  }
  return [...found];
}
