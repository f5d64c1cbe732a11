// The person's own records of one model that are due next.
import { Chip } from "../../shared/components/chip";
import { plural, shortDate, translator } from "../../shared/i18n";
import { addressOf, mayRun, nounOf, titleOf } from "../models";
import { formatWholeAmount } from "../values/money";
import { optionLabel, optionTone } from "../values/options";
import { Widget } from "../widgets/widget";
import { daysUntil, nextRows, type OwnRecords, soonCount } from "./own_records";

const t = translator("home");

const ROWS = 7;

export function addressOfList({ model, filter, dueDateField }: OwnRecords): string {
  const order = dueDateField ? `&order=${dueDateField.name}` : "";
  return `/models/${model.name}?filter=${encodeURIComponent(JSON.stringify(filter))}${order}`;
}

export function OwnList({ ownRecords, day }: { ownRecords: OwnRecords; day: string }) {
  const { model, state, dueDateField, money, total } = ownRecords;
  const models = nounOf(model.plural);
  const isClosing = dueDateField !== undefined && money !== undefined;
  return (
    <Widget title={t(isClosing ? "closing" : "mine", { models, name: model.plural })} count={isClosing ? soonCount(ownRecords, day) : total} link={{ href: addressOfList(ownRecords), label: t("mine", { models }) }}>
      <ul>
        {nextRows(ownRecords, day, ROWS).map((row) => {
          const value = state && row[state.name];
          return (
            <li key={row.id} class="widget-row">
              <span class="grow cut">{mayRun(model, "get") ? <a href={addressOf(model.name, row.id)}>{titleOf(model, row)}</a> : titleOf(model, row)}</span>
              {state && value ? <Chip tone={optionTone(state, String(value))}>{optionLabel(state, String(value))}</Chip> : null}
              {money && <span class="amount">{typeof row[money.name] === "number" && formatWholeAmount(Number(row[money.name]), money.currency)}</span>}
              {dueDateField && <DueDay day={row[dueDateField.name]} today={day} />}
            </li>
          );
        })}
      </ul>
    </Widget>
  );
}

function DueDay({ day, today: now }: { day: unknown; today: string }) {
  if (typeof day !== "string") {
    return <span class="when" />;
  }
  const daysLeft = daysUntil(day, now);
  const dueText = daysLeft < 0 ? plural(-daysLeft, t("late.one"), t("late.n")) : daysLeft === 0 ? t("today") : daysLeft === 1 ? t("tomorrow") : shortDate(day);
  return (
    <time class={daysLeft <= 0 ? "when bad" : daysLeft <= 2 ? "when warn" : "when"} dateTime={day} title={shortDate(day)}>
      {daysLeft < 0 ? <span class="late">{dueText}</span> : dueText}
    </time>
  );
}
