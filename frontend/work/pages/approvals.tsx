// The approvals inbox: what waits for a signature, live, and everything one has to know before signing.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { SelectField } from "../../shared/components/field";
import { Heading, siteState } from "../../shared/components/heading";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { NotFound } from "../../shared/components/shell";
import { Empty, Failed, Loading } from "../../shared/components/states";
import { setQuery, go, query } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { escapeInvisible } from "../../shared/invisible_characters";
import { relativePast, number, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { approve, reject } from "../approvals/decide";
import { PlanDetails, PlanState } from "../approvals/plan_details";
import { followPlans, plans, problem, reloadPlans, connectionState } from "../approvals/live_plans";
import { ConfirmHastyApproval } from "../approvals/confirm_hasty_approval";
import { needsConfirmation, HASTY_S, recordApproval, approvalStatistics, useSecondsOnScreen } from "../approvals/reading_time";
import { AGE_FILTERS, groupSimilar, isExpired, isStale, type Plan } from "../approvals/plan";
import { saveProposalAsDraft, formFor } from "../approvals/edit_proposal";
import { PlanSummary } from "../approvals/record_title";
import { RejectDialog } from "../approvals/reject_dialog";
import { modelOf } from "../models";

const t = translator("approvals");

const TICK_MS = 15_000;

export function Approvals({ meta }: { meta: Meta }) {
  return modelOf(meta, "plan") ? <Inbox meta={meta} /> : <NotFound />;
}

function Inbox({ meta }: { meta: Meta }) {
  const [now_ms, setNow] = useState(Date.now());
  useEffect(() => {
    const end = followPlans();
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => (clearInterval(timer), end());
  }, []);
  const all = plans.value;
  const waiting = all?.filter((plan) => plan.state === "pending" && !isExpired(plan, now_ms)).length;
  useEffect(() => {
    siteState.waiting.value = waiting ?? siteState.waiting.peek();
  }, [waiting]);
  return (
    <div class="stack">
      <Heading title={t("title")}>
        <span class="live small" role="status" data-state={connectionState.value}>
          {connectionState.value === "reconnecting" ? t("reconnecting") : t("live")}
        </span>
      </Heading>
      <p class="quiet">{t("lead")}</p>
      {problem.value && <Failed problem={problem.value} />}
      {all === null && !problem.value && <Loading />}
      {all !== null && <Sorted {...{ meta, all, now_ms }} />}
    </div>
  );
}

function Sorted({ meta, all, now_ms }: { meta: Meta; all: readonly Plan[]; now_ms: number }) {
  const shows = query.value.get("state") === "decided" ? "decided" : "pending";
  const agent = query.value.get("agent") ?? "";
  const modelName = query.value.get("model") ?? "";
  const age = query.value.get("age") ?? "";
  const isOfAge = AGE_FILTERS[age] ?? (() => true);
  const wanted = query.value.get("plan");
  const isOpen = (plan: Plan) => plan.state === "pending" && !isExpired(plan, now_ms);
  const shown = all.filter(
    (plan) =>
      (plan.id === wanted || isOpen(plan) === (shows === "pending")) &&
      (!agent || plan.agent === agent) &&
      isOfAge(plan, now_ms) &&
      (!modelName || plan.command.startsWith(`${modelName}.`)),
  );
  const [looked, setLooked] = useState<ReadonlySet<string>>(new Set());
  const groups = groupSimilar(shown, looked);
  const group = groups.find((each) => each.some((plan) => plan.id === wanted)) ?? groups[0];
  useEffect(() => {
    // From here on it is what one looks at, whatever comes.
    setLooked(new Set(group?.map((each) => each.id)));
    if (group?.[0] && !group.some((each) => each.id === wanted)) {
      setQuery({ plan: group[0].id });
    }
  }, [wanted, group === undefined]);
  const models = [...new Set(all.map((plan) => plan.command.split(".")[0] ?? ""))];
  const agents = [...new Set(all.map((plan) => plan.agent ?? ""))].filter(Boolean);
  const everything = [["", t("filter.all")]] as const;
  return (
    <>
      <div class="filters tight">
        <SelectField
          name="state"
          label={t("filter.state")}
          value={shows}
          onChange={(next) => setQuery({ state: next === "decided" ? next : "", plan: "" })}
          options={[
            ["pending", t("pending")],
            ["decided", t("decided")],
          ]}
        />
        <SelectField
          name="agent"
          label={t("filter.agent")}
          value={agent}
          onChange={(next) => setQuery({ agent: next, plan: "" })}
          options={[...everything, ...agents.map((each) => [each, escapeInvisible(each)] as const)]}
        />
        <SelectField
          name="model"
          label={t("filter.model")}
          value={modelName}
          onChange={(next) => setQuery({ model: next, plan: "" })}
          options={[...everything, ...models.map((each) => [each, modelOf(meta, each)?.plural ?? each] as const)]}
        />
        <SelectField
          name="age"
          label={t("filter.age")}
          value={age}
          onChange={(next) => setQuery({ age: next, plan: "" })}
          options={[...everything, ...Object.keys(AGE_FILTERS).map((each) => [each, t(`age.${each}` as "age.day")] as const)]}
        />
      </div>
      {group ? (
        <Split {...{ meta, groups, group, now_ms }} />
      ) : (
        <Empty title={t("none")}>
          <p>{t("none.text")}</p>
        </Empty>
      )}
    </>
  );
}

interface SplitProps {
  meta: Meta;
  groups: readonly Plan[][];
  group: readonly Plan[];
  now_ms: number;
}

function Split({ meta, groups, group, now_ms }: SplitProps) {
  const [isRejecting, setRejecting] = useState(false);
  const [isRedoing, setRedoing] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const first = group[0];
  const canDecide = first !== undefined && first.state === "pending" && !isExpired(first, now_ms);
  const canSign = canDecide && !isStale(first);
  const at = groups.findIndex((each) => each[0]?.id === first?.id);
  // Keys that lead to another plan take the keyboard there.
  const isLed = useRef(false);
  useEffect(() => {
    if (isLed.current) {
      isLed.current = false;
      document.querySelector<HTMLElement>('.plan[aria-current="true"]')?.focus();
    }
  }, [first?.id]);
  const choose = (plan: Plan | undefined, leads = false) => {
    if (plan) {
      isLed.current = leads;
      setQuery({ plan: plan.id });
    }
  };
  const seconds = useSecondsOnScreen(first?.id);
  const form = first && canSign && group.length === 1 ? formFor(meta, first) : null;
  const deciding = async (decide: () => Promise<boolean>): Promise<boolean> => {
    const next = groups[at + 1]?.[0] ?? groups[at - 1]?.[0];
    setBusy(true);
    const isDone = await decide();
    setBusy(false);
    // What could not be decided stays in sight, with what became of it.
    const isLeft = ({ id, state: now }: Plan) => !["executed", "rejected"].includes(now) && group.some((each) => each.id === id);
    setQuery({ plan: (isDone ? next : (plans.peek()?.find(isLeft) ?? next))?.id });
    return isDone;
  };
  const signNow = () => {
    setAsked(false);
    recordApproval(seconds);
    void deciding(() => approve(group));
  };
  const sign = () => canSign && !isBusy && (needsConfirmation(seconds) ? setAsked(true) : signNow());
  const refuse = async (reason: string) => {
    setRejecting(false);
    setRedoing(false);
    const isDone = await deciding(() => reject(group, reason));
    if (isRedoing && isDone && first && form) {
      saveProposalAsDraft(meta, first, form.key);
      go(form.address);
    }
  };
  useEffect(() => {
    if (first) {
      void reloadPlans(first.id);
    }
  }, [first?.id]);
  // At once, so that two keys in a row lead from plan to plan.
  useLayoutEffect(() => {
    const known = [
      registerShortcut({ key: "j", does: t("key.j"), run: () => choose(groups[at + 1]?.[0], true) }),
      registerShortcut({ key: "k", does: t("key.k"), run: () => choose(groups[at - 1]?.[0], true) }),
      registerShortcut({ key: "a", does: t("key.a"), run: sign }),
      registerShortcut({ key: "r", does: t("key.r"), run: () => canDecide && setRejecting(true) }),
    ];
    return () => known.forEach((each) => each());
  });
  return (
    <div class="inbox">
      <nav aria-label={t("list")}>
        <ul class="plans">
          {groups.map(([plan, ...rest]) =>
            plan ? (
              <li key={plan.id}>
                <button type="button" class="plan" aria-current={plan.id === first?.id} onClick={() => choose(plan)}>
                  <span class="row between">
                    <code>{plan.command}</code>
                    {rest.length > 0 && <Chip>{t("same", { n: number(rest.length + 1) })}</Chip>}
                  </span>
                  <span class="about">
                    <PlanSummary {...{ meta, plan }} />
                  </span>
                  <span class="small quiet">
                    <UntrustedText text={plan.agent ?? plan.proposed_by?.person ?? "–"} /> · {relativePast(plan.proposed_at, now_ms)}
                  </span>
                  {(plan.state !== "pending" || isStale(plan)) && <PlanState plan={plan} now_ms={now_ms} />}
                </button>
              </li>
            ) : null,
          )}
        </ul>
      </nav>
      {first && (
        <section class="plan-page stack" aria-labelledby="plan-title" data-seconds={seconds}>
          <h2 id="plan-title">{first.command}</h2>
          {canDecide && (
            <div class="row">
              {canSign && (
                <Button look="strong" busy={isBusy} onClick={sign}>
                  {group.length > 1 ? t("approve.all", { n: number(group.length) }) : t("approve")}
                </Button>
              )}
              <Button look="risky" onClick={() => setRejecting(true)}>
                {t("reject")}
              </Button>
              {form && <Button onClick={() => setRedoing(true)}>{t("redo")}</Button>}
            </div>
          )}
          {approvalStatistics.value.hasty > 0 && (
            <p class="notice small">{t("hasty", { n: number(approvalStatistics.value.hasty), of: number(approvalStatistics.value.all), seconds: number(HASTY_S) })}</p>
          )}
          {group.map((plan, place) =>
            place === 0 ? (
              <PlanDetails key={plan.id} {...{ meta, plan, now_ms }} />
            ) : (
              <details key={plan.id} class="alike">
                <summary>
                  {t("chosen")} {number(place + 1)}: <PlanSummary {...{ meta, plan }} />
                </summary>
                <PlanDetails {...{ meta, plan, now_ms }} />
              </details>
            ),
          )}
        </section>
      )}
      <RejectDialog
        count={group.length}
        reason={isRedoing ? t("redo.reason") : ""}
        isOpen={isRejecting || isRedoing}
        onClose={() => (setRejecting(false), setRedoing(false))}
        onReject={(reason) => void refuse(reason)}
      />
      <ConfirmHastyApproval {...{ meta, group, now_ms }} isOpen={isAsked} onSign={signNow} onClose={() => setAsked(false)} />
    </div>
  );
}
