// My work: waiting approvals, the person's own due records, and recent activity.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { RequestResult } from "../../shared/components/states";
import { longDay, number, plural, relativePast, translator } from "../../shared/i18n";
import { useRequest } from "../../shared/request";
import { registerShortcut } from "../../shared/shortcuts";
import { type Meta, run } from "../api";
import type { Plan } from "../approvals/plan";
import { phraseOf } from "../approvals/plan_title";
import { PlanSummary, RecordTitle } from "../approvals/record_title";
import { isReversible, riskOf, RISKS } from "../approvals/risk";
import { Activity, ACTIVITY_ROWS, type Event, type FeedEntry, loadActivity, ofFeed } from "../home/activity";
import { amountOf, dueCounts, loadOwnRecords, ownedModels, type OwnRecords, today } from "../home/own_records";
import { type Mention, Mentions } from "../home/mentions";
import { addressOfList, OwnList } from "../home/own_list";
import { recentVisits, type Visit } from "../home/recent";
import { Start } from "../home/start";
import { addressOf, businessModels, mayRun, modelOf, nounOf } from "../models";
import { ownId } from "../ownership";
import { shortPast } from "../relative_time";
import { modelIcon } from "../shell/model_icons";
import { AgentAvatar } from "../values/avatar";
import { formatShortAmount } from "../values/money";
import { KeyFigure, Widget } from "../widgets/widget";
import "../head_action.css";
import "../home/home.css";

const t = translator("home");

const MAX_PLANS = 100;
const PLAN_ROWS = 5;

interface Work {
  plans: { rows: Plan[]; total: number };
  ownRecords: OwnRecords[];
  events: Event[];
  /** The records opened last, as recorded by the service; null if the service does not record them. */
  visits: Visit[] | null;
  mentions: Mention[];
}

/** The used members of the answer of `user.home`. */
interface FirstPage {
  feed: FeedEntry[];
  recent: { record: Visit }[];
  mentions: Mention[];
}

async function loadWork(meta: Meta, signal: AbortSignal): Promise<Work> {
  const filter = [
    { field: "state", op: "eq", value: "pending" },
    { field: "expires_at", op: "gt", value: new Date().toISOString() },
  ];
  const order = [{ field: "proposed_at", dir: "desc" }];
  const noPlans = { rows: [], total: 0 };
  const plan = modelOf(meta, "plan");
  const loadOwn = async () => {
    const me = await ownId(meta, signal);
    return me ? Promise.all(ownedModels(meta).map((ownedModel) => loadOwnRecords(ownedModel, me, signal))) : [];
  };
  const user = modelOf(meta, "user");
  const loadEvents = async () => {
    if (user && mayRun(user, "home")) {
      const { feed, recent, mentions } = (await run<FirstPage>("user", "home", {}, signal)).value;
      return { events: feed.slice(0, ACTIVITY_ROWS).map(ofFeed), visits: recent.map((visit) => visit.record), mentions };
    }
    return { events: plan ? await loadActivity(meta, signal) : [], visits: null, mentions: [] };
  };
  const [plans, records, { events, visits, mentions }] = await Promise.all([
    plan && mayRun(plan, "search") ? run<Work["plans"]>("plan", "search", { filter, order, limit: MAX_PLANS }, signal).then((answer) => answer.value) : noPlans,
    loadOwn(),
    loadEvents(),
  ]);
  return { plans, ownRecords: records, events, visits, mentions };
}

export function Home({ meta }: { meta: Meta }) {
  const workRequest = useRequest((signal) => loadWork(meta, signal), [meta]);
  return (
    <>
      <Heading title={t("title")}>
        <span class="right" />
        <NewRecord meta={meta} />
      </Heading>
      <div class="home">
        <Greeting meta={meta} plans={workRequest.state === "loaded" ? workRequest.value.plans : null} />
        {workRequest.state === "loading" ? <Bones /> : <RequestResult request={workRequest}>{(work) => <Panels {...{ meta, work }} />}</RequestResult>}
      </div>
    </>
  );
}

function NewRecord({ meta }: { meta: Meta }) {
  const models = businessModels(meta).filter((businessModel) => mayRun(businessModel, "create"));
  useLayoutEffect(
    () => registerShortcut({ key: "c", does: t("new"), run: () => document.querySelector<HTMLElement>(".home-new button")?.click() }),
    [],
  );
  return models.length === 0 ? null : (
    <div class="home-new head-action">
      <Menu label={t("new")} icon="plus" items={models.map((model) => ({ label: model.label, icon: modelIcon(model), does: `/models/${model.name}/new` }))} />
    </div>
  );
}

function Greeting({ meta, plans }: { meta: Meta; plans: Work["plans"] | null }) {
  const now = new Date();
  const partOfDay = now.getHours() < 5 ? "day" : now.getHours() < 12 ? "morning" : now.getHours() < 18 ? "day" : "evening";
  const name = meta.caller.name.charAt(0).toUpperCase() + meta.caller.name.slice(1);
  const irreversible = plans?.rows.filter((row) => !isReversible(meta, row)).length ?? 0;
  return (
    <div class="full">
      <h2 class="greeting">{t(`greeting.${partOfDay}`, { name })}</h2>
      <p>
        {longDay(now)}
        {plans && plans.total > 0 && ` · ${plural(plans.total, t("waiting.one"), t("waiting.n"))}`}
        {irreversible > 0 && `, ${plural(irreversible, t("final.one"), t("final.n"))}`}
      </p>
    </div>
  );
}

function Bones() {
  return (
    <>
      <div class="full tiles" aria-hidden="true">
        {[1, 2, 3, 4].map((key) => (
          <div key={key} class="tile">
            <span class="bone home-bone" />
          </div>
        ))}
      </div>
      <p class="hidden-text" role="status">
        {t("loading")}
      </p>
    </>
  );
}

function Panels({ meta, work: { plans, ownRecords, events, visits: noted, mentions } }: { meta: Meta; work: Work }) {
  const [now_ms, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  const day = today(new Date(now_ms));
  const filledPanels = ownRecords.filter((ownRecord) => ownRecord.rows.length > 0);
  const visits = (noted ?? recentVisits.value).filter((recentVisit) => modelOf(meta, recentVisit.model));
  const isEmpty = mentions.length === 0 && plans.total === 0 && filledPanels.length === 0 && events.length === 0;
  return (
    <>
      {!isEmpty && <Tiles {...{ plans, ownRecords, day, now_ms }} />}
      {isEmpty && <Start meta={meta} />}
      <div class="home-part">
        {mentions.length > 0 && <Mentions {...{ mentions, now_ms }} />}
        {plans.rows.length > 0 && <Decisions {...{ meta, plans, now_ms }} />}
        {filledPanels.map((panel) => (
          <OwnList key={panel.model.name} ownRecords={panel} day={day} />
        ))}
      </div>
      <div class="home-part">
        {events.length > 0 && <Activity {...{ meta, events, now_ms }} />}
        {visits.length > 0 && <Recent {...{ meta, visits }} />}
      </div>
    </>
  );
}

function Tiles({ plans, ownRecords, day, now_ms }: { plans: Work["plans"]; ownRecords: readonly OwnRecords[]; day: string; now_ms: number }) {
  const oldestPlan = plans.rows.at(-1);
  const [firstRecords, ...otherRecords] = ownRecords;
  const { week, overdue } = dueCounts(ownRecords, day);
  const note = (ownRecords: OwnRecords) => {
    const amount = amountOf(ownRecords);
    return amount !== undefined ? t("expected", { amount: formatShortAmount(amount, ownRecords.money?.currency) }) : lateNote(dueCounts([ownRecords], day).overdue);
  };
  const tile = (ownRecords: OwnRecords) => (
    <KeyFigure
      key={ownRecords.model.name}
      icon={modelIcon(ownRecords.model)}
      label={t(ownRecords === firstRecords ? "mine.open" : "mine", { models: nounOf(ownRecords.model.plural) })}
      value={number(ownRecords.total)}
      note={note(ownRecords)}
      href={addressOfList(ownRecords)}
    />
  );
  return (
    <div class="full tiles">
      <KeyFigure
        isDue={plans.total > 0}
        icon="inbox"
        label={t("waiting")}
        value={number(plans.total)}
        note={oldestPlan && plans.rows.length === plans.total ? t("oldest", { when: relativePast(oldestPlan.proposed_at, now_ms) }) : plans.total === 0 && t("waiting.none")}
        href="/approvals"
      />
      {firstRecords && tile(firstRecords)}
      {ownRecords.some((ownRecord) => ownRecord.dueDateField) && <KeyFigure icon="calendar" label={t("due")} value={number(week)} note={lateNote(overdue)} />}
      {otherRecords.slice(0, 1).map(tile)}
    </div>
  );
}

function lateNote(overdue: number) {
  return overdue > 0 ? <span class="bad">{plural(overdue, t("overdue.one"), t("overdue.n"))}</span> : t("overdue.none");
}

function Decisions({ meta, plans, now_ms }: { meta: Meta; plans: Work["plans"]; now_ms: number }) {
  const rated = plans.rows.map((plan) => ({ plan, risk: riskOf(meta, plan) }));
  const sortedPlans = rated.toSorted((a, b) => RISKS.indexOf(a.risk) - RISKS.indexOf(b.risk));
  return (
    <Widget title={t("decisions")} waiting={plans.total} link={{ href: "/approvals", label: t("decisions.all") }}>
      <ul>
        {sortedPlans.slice(0, PLAN_ROWS).map(({ plan, risk }) => (
          <li key={plan.id} class="widget-row">
            <span class={`risk-bar ${risk}`} />
            <AgentAvatar />
            <a class="cut grow" href={`/approvals?plan=${encodeURIComponent(plan.id)}`}>
              {phraseOf(meta, plan)}{" "}
              <span class="quiet">{plan.record_name ?? <PlanSummary meta={meta} plan={plan} />}</span>
            </a>
            <Chip plain tone={risk === "high" ? "bad" : risk === "medium" ? "warn" : "good"}>
              {t(`risk.${risk}`)}
            </Chip>
            {plan.agent && <span class="quiet agent-name">{plan.agent}</span>}
            <time class="when age" dateTime={plan.proposed_at}>
              {shortPast(plan.proposed_at, now_ms)}
            </time>
          </li>
        ))}
      </ul>
    </Widget>
  );
}

function Recent({ meta, visits }: { meta: Meta; visits: readonly Visit[] }) {
  return (
    <Widget title={t("recent")}>
      <ul>
        {visits.map(({ model: name, id }) => {
          const model = modelOf(meta, name);
          return model ? (
            <li key={id} class="widget-row">
              <Icon name={modelIcon(model)} />
              <a class="grow cut" href={addressOf(name, id)}>
                <RecordTitle model={model} recordRef={{ model: name, id }} isBare />
              </a>
              <span class="when">{model.label}</span>
            </li>
          ) : null;
        })}
      </ul>
    </Widget>
  );
}
