// The approvals inbox: the live list of proposals, and all details for a decision.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Heading, siteState } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { Empty, FailureNotice, Loading } from "../../shared/components/states";
import { setQuery, go, query } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { number, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { ActionBar } from "../approvals/action_bar";
import { ConfirmApproval } from "../approvals/confirm_approval";
import { approve, reject } from "../approvals/decide";
import { followPlans, plans, problem, reloadPlans, connectionState } from "../approvals/live_plans";
import { PlanContext } from "../approvals/plan_context";
import { PlanDetails, PlanHead } from "../approvals/plan_details";
import { PlanFilter } from "../approvals/plan_filter";
import { PlanList } from "../approvals/plan_list";
import { needsConfirmation, recordApproval, useSecondsOnScreen } from "../approvals/reading_time";
import { AGE_FILTERS, groupSimilar, isExpired, isStale, type Plan } from "../approvals/plan";
import { editPageOf, saveProposalAsDraft } from "../approvals/edit_proposal";
import { PlanSummary } from "../approvals/record_title";
import { dropReason, RejectDialog } from "../approvals/reject_dialog";
import { riskOf, RISKS } from "../approvals/risk";
import { addressOf, modelOf } from "../models";
import "../approvals/approvals.css";

const t = translator("approvals");

const TICK_MS = 15_000;

/** "own" contains the proposals of the person's own agents, pending or decided. */
const TABS = ["pending", "decided", "own"] as const;
type Tab = (typeof TABS)[number];

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
  const allPlans = plans.value;
  const waitingCount = allPlans?.filter((plan) => plan.state === "pending" && !isExpired(plan, now_ms)).length;
  useEffect(() => {
    siteState.waiting.value = waitingCount ?? siteState.waiting.peek();
  }, [waitingCount]);
  const shows = TABS.find((tab) => tab === query.value.get("state")) ?? "pending";
  const tab = (state: Tab, count?: number) => (
    <a href={state === "pending" ? "/approvals" : `/approvals?state=${state}`} class={`${state}-tab`} aria-current={shows === state ? "page" : undefined}>
      {t(state)}
      {count !== undefined && <span class="count-of">{number(count)}</span>}
    </a>
  );
  return (
    <div class="page">
      <Heading title={t("title")}>
        <span class="live small" role="status" data-state={connectionState.value}>
          {connectionState.value === "reconnecting" ? t("reconnecting") : t("live")}
        </span>
        <div class="head-end">
          <nav class="views" aria-label={t("view")}>
            {tab("pending", waitingCount)}
            {tab("decided")}
            {tab("own")}
          </nav>
          {allPlans !== null && <PlanFilter {...{ meta, plans: allPlans }} />}
        </div>
      </Heading>
      {problem.value && <FailureNotice problem={problem.value} />}
      {allPlans === null && !problem.value && <Loading />}
      {allPlans !== null && <PlanTabs key={shows} {...{ meta, plans: allPlans, now_ms, shows }} />}
    </div>
  );
}

interface SortedProps {
  meta: Meta;
  plans: readonly Plan[];
  now_ms: number;
  shows: Tab;
}

function PlanTabs({ meta, plans, now_ms, shows }: SortedProps) {
  const agent = query.value.get("agent") ?? "";
  const modelName = query.value.get("model") ?? "";
  const age = query.value.get("age") ?? "";
  const isOfAge = AGE_FILTERS[age] ?? (() => true);
  const planId = query.value.get("plan");
  const isOpen = (plan: Plan) => plan.state === "pending" && !isExpired(plan, now_ms);
  const isOwn = (plan: Plan) => plan.agent !== null && plan.proposed_by?.person === meta.caller.name;
  const isInTab = (plan: Plan) => (shows === "own" ? isOwn(plan) : isOpen(plan) === (shows === "pending"));
  const shownPlans = plans.filter(
    (plan) =>
      (plan.id === planId || isInTab(plan)) &&
      (!agent || plan.agent === agent) &&
      isOfAge(plan, now_ms) &&
      (!modelName || plan.command.startsWith(`${modelName}.`)),
  );
  const [openPlanIds, setOpenPlanIds] = useState<ReadonlySet<string>>(new Set());
  // Sort by risk, as the list does.
  const groups = groupSimilar(shownPlans, openPlanIds).sort((group, otherGroup) => rank(meta, group) - rank(meta, otherGroup));
  const group = groups.find((group) => group.some((plan) => plan.id === planId)) ?? groups[0];
  useEffect(() => {
    // From now on this group does not change when new plans arrive.
    setOpenPlanIds(new Set(group?.map((plan) => plan.id)));
    if (group?.[0] && !group.some((plan) => plan.id === planId)) {
      setQuery({ plan: group[0].id });
    }
  }, [planId, group === undefined]);
  return group ? (
    <PlansAndDetails {...{ meta, groups, group, now_ms }} />
  ) : (
    <Empty title={t(shows === "pending" ? "none" : `empty.${shows}`)} icon={shows === "pending" ? "circle-check" : "inbox"}>
      {shows === "pending" && <p>{t("none.text")}</p>}
    </Empty>
  );
}

function rank(meta: Meta, group: readonly Plan[]): number {
  return group[0] ? RISKS.indexOf(riskOf(meta, group[0])) : 0;
}

interface SplitProps {
  meta: Meta;
  groups: readonly Plan[][];
  group: readonly Plan[];
  now_ms: number;
}

function PlansAndDetails({ meta, groups, group, now_ms }: SplitProps) {
  const [isRejecting, setRejecting] = useState(false);
  const [isRedoing, setRedoing] = useState(false);
  const [isUnsent, setUnsent] = useState(false);
  const [confirmReason, setConfirmReason] = useState<"risk" | "haste" | null>(null);
  // On a phone the list covers the proposal.
  const [isListed, setListed] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const firstPlan = group[0];
  const canDecide = firstPlan !== undefined && firstPlan.state === "pending" && !isExpired(firstPlan, now_ms);
  const canSign = canDecide && !isStale(firstPlan);
  const groupIndex = groups.findIndex((group) => group[0]?.id === firstPlan?.id);
  // Whether a key selected the plan: the focus then moves to it.
  const isSelectedByKey = useRef(false);
  useEffect(() => {
    if (isSelectedByKey.current) {
      isSelectedByKey.current = false;
      document.querySelector<HTMLElement>('.plan[aria-current="true"]')?.focus();
    }
  }, [firstPlan?.id]);
  const choose = (plan: Plan | undefined, leads = false) => {
    if (plan) {
      isSelectedByKey.current = leads;
      setQuery({ plan: plan.id });
    }
  };
  const open = ({ target }: Plan) => target?.model && target.id && go(addressOf(target.model, target.id));
  const seconds = useSecondsOnScreen(firstPlan?.id);
  const editPage = firstPlan && canSign && group.length === 1 ? editPageOf(meta, firstPlan) : null;
  const decideAndMoveOn = async (decide: () => Promise<boolean>): Promise<boolean> => {
    const nextPlan = groups[groupIndex + 1]?.[0] ?? groups[groupIndex - 1]?.[0];
    setBusy(true);
    const isDone = await decide();
    setBusy(false);
    // Plans that could not be decided stay visible with their state.
    const isUndecided = ({ id, state: now }: Plan) => !["executed", "rejected"].includes(now) && group.some((plan) => plan.id === id);
    setQuery({ plan: (isDone ? nextPlan : (plans.peek()?.find(isUndecided) ?? nextPlan))?.id });
    return isDone;
  };
  const signNow = () => {
    setConfirmReason(null);
    recordApproval(seconds);
    void decideAndMoveOn(() => approve(group));
  };
  const sign = () => {
    if (firstPlan && canSign && !isBusy) {
      const isHasty = needsConfirmation(seconds);
      const isRisky = riskOf(meta, firstPlan) === "high";
      return isHasty ? setConfirmReason("haste") : isRisky ? setConfirmReason("risk") : signNow();
    }
  };
  const rejectGroup = async (reason: string) => {
    setUnsent(false);
    const isDone = await decideAndMoveOn(() => reject(group, reason));
    // A decision that did not reach the service stays in its dialog.
    if (!isDone && plans.peek()?.some(({ id, state }) => id === firstPlan?.id && state === "pending")) {
      setUnsent(true);
      return;
    }
    setRejecting(false);
    setRedoing(false);
    dropReason(firstPlan?.id ?? "");
    if (isRedoing && isDone && firstPlan && editPage) {
      if (editPage.draftKey) {
        saveProposalAsDraft(meta, firstPlan, editPage.draftKey);
      }
      go(editPage.address);
    }
  };
  useEffect(() => {
    if (firstPlan) {
      void reloadPlans(firstPlan.id);
    }
  }, [firstPlan?.id]);
  // Use a layout effect, so that a second key press acts on the next plan.
  useLayoutEffect(() => {
    const unregister = [
      registerShortcut({ key: "j", does: t("key.j"), run: () => choose(groups[groupIndex + 1]?.[0], true) }),
      registerShortcut({ key: "k", does: t("key.k"), run: () => choose(groups[groupIndex - 1]?.[0], true) }),
      registerShortcut({ key: "a", does: t("key.a"), run: sign }),
      registerShortcut({ key: "r", does: t("key.r"), run: () => canDecide && setRejecting(true) }),
      registerShortcut({ key: "e", does: t("key.e"), run: () => editPage && setRedoing(true) }),
      registerShortcut({ key: "Enter", does: t("key.open") }),
    ];
    return () => unregister.forEach((remove) => remove());
  });
  return (
    <div class={isListed ? "inbox listed" : "inbox"}>
      <PlanList {...{ meta, groups, now_ms }} current={firstPlan?.id} onChoose={(plan) => (choose(plan), setListed(false))} onOpen={open} />
      {firstPlan && (
        <section class="plan-page" aria-labelledby="plan-title" data-seconds={seconds}>
          <div class="plan-scroll" tabIndex={-1}>
            <div class="list-button">
              <Button tight aria-expanded={isListed} onClick={() => setListed(!isListed)}>
                <Icon name="list" size="s" />
                {t("show.list")} {number(groups.length)}
              </Button>
            </div>
            <PlanHead {...{ meta, plan: firstPlan, now_ms }} count={group.length} />
            {group.map((plan, index) =>
              index === 0 ? (
                <PlanDetails key={plan.id} {...{ meta, plan }} count={group.length} />
              ) : (
                <details key={plan.id} class="alike">
                  <summary>
                    {t("chosen")} {number(index + 1)}: <PlanSummary {...{ meta, plan }} />
                  </summary>
                  <PlanDetails {...{ meta, plan }} />
                </details>
              ),
            )}
          </div>
          {canDecide && (
            <ActionBar {...{ meta, group, isBusy }} onSign={canSign ? sign : null} onReject={() => setRejecting(true)} onRedo={editPage ? () => setRedoing(true) : null} />
          )}
        </section>
      )}
      {firstPlan && <PlanContext key={firstPlan.id} {...{ meta, plan: firstPlan, now_ms }} />}
      <RejectDialog
        plan={firstPlan?.id ?? ""}
        count={group.length}
        reason={isRedoing ? t("redo.reason") : ""}
        isOpen={isRejecting || isRedoing}
        {...{ isBusy, isUnsent }}
        onClose={() => (setRejecting(false), setRedoing(false), setUnsent(false))}
        onReject={(reason) => void rejectGroup(reason)}
      />
      <ConfirmApproval {...{ meta, group, confirmReason: confirmReason }} onSign={signNow} onClose={() => setConfirmReason(null)} />
    </div>
  );
}
