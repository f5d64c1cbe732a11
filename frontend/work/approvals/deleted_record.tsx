// The values of a record that a proposal deletes: all values if they fit in the window, otherwise the most important
// values.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { number, translator } from "../../shared/i18n";
import type { Field, Meta, Model } from "../api";
import { type Change, Changes } from "../record/changes";

const t = translator("approvals");

/** The number of fields that are shown if not all fit. */
const MAX_FOLDED_FIELDS = 6;

interface Props {
  meta: Meta;
  model: Model | undefined;
  changes: readonly Change[];
}

export function DeletedRecord({ meta, model, changes }: Props) {
  const { box, hasRoom } = useRoom(changes.length);
  const [isWhole, setWhole] = useState(false);
  const tellingValues = tellingOf(model, changes);
  const hiddenCount = changes.length - tellingValues.size;
  // A button that hides a single field saves no space.
  const canFold = hiddenCount > 1 && !hasRoom;
  return (
    <div ref={box}>
      <Changes
        // A new table for another number of rows: one cell spans all of them.
        key={String(canFold && !isWhole)}
        meta={meta}
        headings={[t("field"), t("diff.now"), t("diff.after")]}
        emptyText={t("nothing.remains")}
        changes={canFold && !isWhole ? changes.filter((change) => tellingValues.has(change)) : changes}
      />
      {canFold && (
        <button type="button" class="more-fields" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          <Icon name="chevron-down" size="s" />
          {isWhole ? t("fields.fewer") : t("fields.more", { n: number(hiddenCount) })}
        </button>
      )}
    </div>
  );
}

/** Whether the proposal with all fields fits in its pane without scrolling: measured before the page is painted, again
 *  for another number of fields and when the window changes. On a phone, where the whole page scrolls, it never does. */
function useRoom(fieldCount: number) {
  const box = useRef<HTMLDivElement>(null);
  const [hasRoom, setRoom] = useState(true);
  const [windowSize, setWindowSize] = useState("");
  useEffect(() => {
    const onResize = () => (setRoom(true), setWindowSize(`${innerWidth} ${innerHeight}`));
    addEventListener("resize", onResize);
    return () => removeEventListener("resize", onResize);
  }, []);
  useLayoutEffect(() => {
    const pane = box.current?.closest(".plan-scroll");
    setRoom(pane !== null && pane !== undefined && getComputedStyle(pane).overflowY === "auto" && pane.scrollHeight <= pane.clientHeight);
  }, [fieldCount, windowSize]);
  return { box, hasRoom };
}

/** The title, state, amount, date, contact and owner of the record, and further fields up to the limit. */
function tellingOf(model: Model | undefined, changes: readonly Change[]): ReadonlySet<Change> {
  const firstField = (matches: (field: Field) => boolean) => changes.find(({ field }) => field !== undefined && matches(field));
  const tellingFields = [
    firstField(({ name }) => name === (model?.title_field ?? model?.shown_as)),
    firstField(({ name, kind }) => (model?.state_field ? name === model.state_field : kind === "select")),
    firstField(({ kind }) => kind === "money"),
    firstField(({ kind }) => kind === "date"),
    firstField(({ is_personal, masked }) => is_personal === true || masked) ?? firstField(({ ref }) => ref !== null && ref !== "user"),
    firstField(({ ref }) => ref === "user"),
    ...changes,
  ];
  return new Set(tellingFields.filter((tellingField) => tellingField !== undefined).filter((tellingField, index, fields) => fields.indexOf(tellingField) === index).slice(0, MAX_FOLDED_FIELDS));
}
