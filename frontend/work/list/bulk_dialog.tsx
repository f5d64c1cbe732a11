// Before a command is run for many records: how many, with what; while it runs: how far; then what became of each.
import { useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Faults } from "../../shared/components/field";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { plural, number, translator } from "../../shared/i18n";
import type { Meta, Model, Row } from "../api";
import { addressOf, fieldOf, may, titleOf } from "../models";
import { FormFields } from "../record/form_fields";
import { cacheRecords } from "../referenced_records";
import { parseText } from "../values/field_text";
import { type BulkResult, reloadRecords, runAll, type BulkCommand } from "./bulk";
import type { RowSelection } from "./selection";
import type { Rows } from "./rows";

const t = translator("list");

const SAMPLE = 5;
const MOST_DONE = 200;
const PREFIX = "bulk-";

interface Props {
  meta: Meta;
  model: Model;
  rows: Rows;
  picking: RowSelection;
  wanted: BulkCommand;
  onClose: () => void;
}

export function BulkDialog({ meta, model, rows, picking, wanted, onClose }: Props) {
  const [several] = useState(() => [...picking.picked.values()]);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const [became, setBecame] = useState<readonly BulkResult[] | null>(null);
  const [tried, setTried] = useState<number | null>(null);
  const isStopped = useRef(false);
  const isClosed = useRef(false);
  const isDeletion = wanted.command === "delete";
  const isAction = !["update", "delete"].includes(wanted.command);
  const fields = wanted.inputs.flatMap((name) => {
    const field = fieldOf(model, name);
    return field ? [{ ...field, readonly: false, required: isAction || field.required }] : [];
  });
  const run = async () => {
    const given = fields.map((field) => {
      const text = texts[field.name] ?? "";
      // Refused for each of them otherwise.
      const isMissing = field.required && text === "";
      return [field.name, isMissing ? { fault: t("bulk.needed", { label: field.label }) } : parseText(field, text)] as const;
    });
    const faults = given.flatMap(([name, each]) => ("fault" in each ? [{ parameter: PREFIX + name, detail: each.fault }] : []));
    if (faults.length) {
      setProblem(new Problem(0, { detail: faults[0]?.detail, errors: faults }));
      return;
    }
    const values = Object.fromEntries(given.map(([name, each]) => [name, "value" in each ? each.value : null]));
    const told: BulkResult[] = [];
    isStopped.current = false;
    setProblem(null);
    setTried(0);
    await runAll(model, wanted.command, several, values, (each) => setTried(told.push(each)), () => isStopped.current);
    setBecame(told);
    if (isClosed.current) {
      showToast(summary(told));
    }
    await settle(told);
  };
  /** What was done shows in the list and is picked no more; what was not stays picked, to be tried otherwise. */
  const settle = async (told: readonly BulkResult[]) => {
    const changed = told.flatMap((each) => (each.state === "done" && each.now ? [each.now] : []));
    cacheRecords(model, changed);
    const rest = told.flatMap((each) => (each.state === "refused" || each.state === "left" ? [each.row] : []));
    const now = await reloadRecords(model, rest).catch(() => rest);
    picking.put(new Map(now.map((each) => [each.id, each])));
    rows.reload();
  };
  const close = () => {
    isStopped.current = true;
    isClosed.current = true;
    onClose();
  };
  const count = number(several.length);
  const command = `${model.name}.${wanted.command}`;
  return (
    <Dialog
      title={`${wanted.label}: ${t("picked.n", { n: count })}`}
      look="wide"
      isOpen
      onClose={close}
      actions={
        tried === null ? (
          <Button look={isDeletion ? "risky" : "strong"} onClick={() => void run()}>
            {plural(several.length, t("bulk.run.one"), t("bulk.run"))}
          </Button>
        ) : (
          became === null && <Button onClick={() => (isStopped.current = true)}>{t("bulk.stop")}</Button>
        )
      }
    >
      <Faults problem={problem} />
      {tried === null ? (
        <>
          <p>{plural(several.length, t("bulk.each.one", { command }), t("bulk.each", { command }))}</p>
          {isAction && <p>{t("bulk.fits", { n: number(wanted.fits(several)), of: count })}</p>}
          {isDeletion && <p>{t("bulk.gone")}</p>}
          <FormFields
            {...{ meta, fields, texts, problem }}
            prefix={PREFIX}
            base={null}
            onText={(name, text) => setTexts({ ...texts, [name]: text })}
            onKeep={() => undefined}
          />
          <p class="small quiet">
            {several.slice(0, SAMPLE).map((each) => titleOf(model, each)).join(", ")}
            {several.length > SAMPLE && ` … ${t("bulk.more", { n: number(several.length - SAMPLE) })}`}
          </p>
        </>
      ) : (
        <div class="stack">
          <progress value={tried} max={several.length} aria-label={t("bulk.progress")} />
          {became === null ? <p role="status">{plural(several.length, t("bulk.going.one"), t("bulk.going"))}</p> : <Results {...{ model, became }} />}
        </div>
      )}
    </Dialog>
  );
}

function sorted(became: readonly BulkResult[]) {
  const of = (state: BulkResult["state"]) => became.filter((each) => each.state === state);
  return { done: of("done"), proposed: of("proposed"), refused: of("refused"), left: of("left") };
}

function summary(became: readonly BulkResult[]): string {
  const { done, proposed, refused, left } = sorted(became);
  return t("bulk.ended", {
    done: number(done.length),
    proposed: number(proposed.length),
    refused: number(refused.length),
    left: number(left.length),
  });
}

/** All that did not go through, each with its reason; of very many that did, their number has to do. */
function Results({ model, became }: { model: Model; became: readonly BulkResult[] }) {
  const { done, proposed, refused, left } = sorted(became);
  const rows = [...refused, ...left, ...proposed, ...(done.length > MOST_DONE ? [] : done)];
  const name = (row: Row) => (may(model, "get") ? <a href={addressOf(model.name, row.id)}>{titleOf(model, row)}</a> : titleOf(model, row));
  return (
    <>
      <p role="status">{summary(became)}</p>
      {refused.length + left.length > 0 && <p>{t("bulk.still")}</p>}
      {rows.length > 0 && (
        <Table
          caption={t("bulk.results")}
          rows={rows}
          keyOf={(each) => each.row.id}
          columns={[
            { name: "record", label: model.label, cell: ({ row }) => name(row) },
            { name: "became", label: t("bulk.became"), cell: (each) => <Told became={each} /> },
          ]}
        />
      )}
    </>
  );
}

function Told({ became }: { became: BulkResult }) {
  switch (became.state) {
    case "refused":
      return <strong class="refused">{became.why}</strong>;
    case "proposed":
      return <a href={`/approvals?plan=${encodeURIComponent(became.planId)}`}>{t("proposed")}</a>;
    default:
      return t(`bulk.${became.state}`);
  }
}
