// The fields of a connected table with what agents see of each, why, and the buttons for a decision.
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Table } from "../../shared/components/table";
import { date, translator } from "../../shared/i18n";
import { type Choice, isPending, type MappedField, type Sight, sightText } from "./decisions";

const t = translator("data");

interface Props {
  caption: string;
  fields: readonly MappedField[];
  labelOf: (field: MappedField) => string;
  onChoose: (field: MappedField, choice: Choice) => void;
}

export function ConnectedFields({ caption, fields, labelOf, onChoose }: Props) {
  return (
    <Table
      caption={caption}
      rows={fields}
      keyOf={(field) => field.field}
      columns={[
        {
          name: "field",
          label: t("field"),
          cell: (field) => (
            <span class="mapped-name">
              {labelOf(field) !== field.name && labelOf(field)} <code>{field.name}</code>
            </span>
          ),
        },
        { name: "agents", label: t("agents"), cell: (field) => <AgentsSee field={field} /> },
        { name: "why", label: t("why"), cell: (field) => <Why field={field} /> },
        { name: "decision", label: t("decision"), cell: (field) => <DecisionButtons {...{ field, onChoose }} name={labelOf(field)} /> },
      ]}
    />
  );
}

function SightChip({ sight }: { sight: Sight }) {
  return sight.see === "tokens" ? <span class="chip masked">{sightText(sight)}</span> : <>{sightText(sight)}</>;
}

function AgentsSee({ field }: { field: MappedField }) {
  return (
    <span class="row sights">
      <SightChip sight={field.agents_see} />{" "}
      {isPending(field) && (
        <span class="row sights">
          <span class="quiet">{t("then")}</span> <SightChip sight={field.after_restart} />
        </span>
      )}
    </span>
  );
}

function Why({ field }: { field: MappedField }) {
  const { decided_by: by, decided_on: on } = field;
  return (
    <span class="row sights">
      {field.state === "undecided" && <Chip tone="warn">{t("state.undecided")}</Chip>}
      {field.state === "decided" && <Chip tone="good">{by && on ? t("state.decided.by", { person: by, date: date(on) }) : t("state.decided")}</Chip>}
      {field.why && <span class="quiet">{field.why}</span>}
    </span>
  );
}

function DecisionButtons({ field, name, onChoose }: { field: MappedField; name: string; onChoose: Props["onChoose"] }) {
  if (field.choices.length === 0) {
    return <span class="quiet">–</span>;
  }
  if (field.state !== "undecided") {
    return (
      <Button tight aria-label={t("change.of", { field: name })} onClick={() => onChoose(field, choiceOf(field))}>
        {t("change")}
      </Button>
    );
  }
  return (
    <span class="row decide" role="group" aria-label={t("decide.title", { field: name })} data-undecided={field.field}>
      {field.choices.map((choice) => (
        <Button key={choice} tight aria-label={t("choice.of", { choice: choiceText(field, choice), field: name })} onClick={() => onChoose(field, choice)}>
          {choiceText(field, choice)}
        </Button>
      ))}
    </span>
  );
}

/** What the module text says now, as a choice that is possible. */
function choiceOf(field: MappedField): Choice {
  const choice = ({ values: "clear", tokens: "personal", nothing: "hidden" } as const)[field.after_restart.see];
  return field.choices.includes(choice) ? choice : (field.choices[0] ?? "hidden");
}

function choiceText(field: MappedField, choice: Choice): string {
  return t(choice === "hidden" && field.after_restart.see === "nothing" ? "choice.hidden.stay" : `choice.${choice}`);
}

/** Focus the first button of the next field to decide on, after the focused one, or of the first one. */
export function focusNextUndecided(step: 1 | -1 = 1, from: Element | null = document.activeElement): void {
  const groups = [...document.querySelectorAll<HTMLElement>("[data-undecided]")];
  const isAfter = (group: HTMLElement) => from !== null && (from.compareDocumentPosition(group) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
  const others = groups.filter((group) => from === null || !group.contains(from));
  const next = step === 1 ? (others.find(isAfter) ?? others[0]) : (others.findLast((group) => !isAfter(group)) ?? others.at(-1));
  next?.closest("details")?.setAttribute("open", "");
  next?.querySelector("button")?.focus();
}
