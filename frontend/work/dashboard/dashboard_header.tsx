// The head of a dashboard: the choice of dashboard, period and owner. On a phone it is one row, and a button opens
// the rest.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { Button, CopyButton } from "../../shared/components/button";
import { Icon, type IconName } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import { useRequest } from "../../shared/request";
import { go, query, setQuery } from "../../shared/router";
import { type Field, type Meta, type Model, run, type Row } from "../api";
import { ownedModels } from "../home/own_records";
import { modelOf, titleOf } from "../models";
import { isNarrow } from "../screen_size";
import { Popover } from "../popover";
import { PERIODS, type Period } from "./periods";
import type { SavedDashboard } from "./saved_dashboards";

const t = translator("dashboard");

const MAX_PEOPLE = 200;

/** The dashboard of a group of models. */
export interface Board {
  name: string;
  label: string;
  models: Model[];
}

/** The dashboards as a select, which replaces the tabs and the heading on phones. */
export function BoardSelect({ boards, savedDashboards, currentBoard }: { boards: readonly Board[]; savedDashboards: readonly SavedDashboard[]; currentBoard: string }) {
  const open = (value: string) => {
    const [key = "", id = ""] = value.split("=");
    go(addressWith({ [key]: id }));
  };
  return (
    <SelectButton variant="of-board">
      <select aria-label={t("title")} value={currentBoard} onChange={(event) => open(event.currentTarget.value)}>
        {boards.map((shownBoard) => (
          <option key={shownBoard.name} value={`board=${shownBoard.name}`}>
            {shownBoard.label}
          </option>
        ))}
        {savedDashboards.map((savedDashboard) => (
          <option key={savedDashboard.id} value={`dashboard=${savedDashboard.id}`}>
            {savedDashboard.name}
          </option>
        ))}
      </select>
    </SelectButton>
  );
}

/** The address of another dashboard, with the same period and owner. */
export function addressWith(parameters: Readonly<Record<string, string>>): string {
  const newQuery = new URLSearchParams(query.value);
  ["board", "dashboard", "edit"].forEach((name) => newQuery.delete(name));
  Object.entries(parameters).forEach(([key, value]) => newQuery.set(key, value));
  return `/dashboard?${newQuery}`;
}

/** The owner field of a dashboard's records. */
export function ownerFieldOf(meta: Meta, model: Model): Field | undefined {
  return ownedModels(meta).find((ownedModel) => ownedModel.model === model)?.owner;
}

interface ChoicesProps {
  meta: Meta;
  models: readonly Model[];
  /** The name of the period. */
  name: string;
  period: Period;
  /** The button that edits the dashboard. */
  children: ComponentChildren;
}

export function Choices({ meta, models, name, period, children }: ChoicesProps) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const owner = <OwnerSelect {...{ meta, models }} />;
  const days = name === "custom" && <Days period={period} />;
  const link = <CopyButton text={location.href} name={t("link.of")} label={t("link")} />;
  if (models.length === 0) {
    return <>{children}</>;
  }
  if (!isNarrow.value) {
    return (
      <>
        <div class="board-choices">
          {days}
          <PeriodSelect name={name} />
          {owner}
          {link}
        </div>
        {children}
      </>
    );
  }
  const opener = (
    <Button size="square" variant="plain" id="board-more" aria-label={t("more")} title={t("more")} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
      <Icon name="ellipsis" />
    </Button>
  );
  // Close the popover when the focus leaves it, because it would cover the element that has the focus next. The document
  // has its new active element only after this event.
  const leave = () => setTimeout(() => box.current?.contains(document.activeElement) || setOpen(false));
  return (
    <div class="board-choices" ref={box} onFocusOut={leave}>
      <PeriodSelect name={name} />
      <Popover {...{ isOpen, opener }} label={t("more")} onClose={() => setOpen(false)}>
        <div class="stack" tabIndex={-1}>
          {days}
          {owner}
          {link}
          {children}
        </div>
      </Popover>
    </div>
  );
}

function Days({ period }: { period: Period }) {
  return (
    <>
      <input class="input tight" type="date" aria-label={t("from")} value={period.from} max={period.to} onChange={(event) => setQuery({ from: event.currentTarget.value })} />
      <input class="input tight" type="date" aria-label={t("to")} value={period.to} min={period.from} onChange={(event) => setQuery({ to: event.currentTarget.value })} />
    </>
  );
}

function PeriodSelect({ name }: { name: string }) {
  return (
    <SelectButton icon="calendar">
      <select aria-label={t("period")} value={name} onChange={(event) => setQuery({ period: event.currentTarget.value })}>
        {PERIODS.map((periodName) => (
          <option key={periodName} value={periodName}>
            {t(`period.${periodName}`)}
          </option>
        ))}
      </select>
    </SelectButton>
  );
}

function OwnerSelect({ meta, models }: { meta: Meta; models: readonly Model[] }) {
  const hasOwner = models.some((model) => ownerFieldOf(meta, model));
  const people = useRequest(async (signal) => (hasOwner ? (await run<Row[]>("user", "list", { limit: MAX_PEOPLE }, signal)).value : []), [hasOwner]);
  const user = modelOf(meta, "user");
  return hasOwner && user && people.state === "loaded" ? (
    <SelectButton icon="users">
      <select aria-label={t("owner")} value={query.value.get("owner") ?? ""} onChange={(event) => setQuery({ owner: event.currentTarget.value })}>
        <option value="">{t("owner.all")}</option>
        {people.value.map((person) => (
          <option key={person.id} value={person.id}>
            {String(person["name"] ?? titleOf(user, person))}
          </option>
        ))}
      </select>
    </SelectButton>
  ) : null;
}

/** A select that looks like the other buttons of the head, with its arrow. */
function SelectButton({ icon, variant = "", children }: { icon?: IconName; variant?: string; children: ComponentChildren }) {
  return (
    <span class={`select-button ${variant}`}>
      {icon && <Icon name={icon} size="s" />}
      {children}
      <Icon name="chevron-down" size="s" />
    </span>
  );
}
