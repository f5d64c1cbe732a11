// The dialog of a bulk command: asks for inputs, shows the progress, then the result for each record.
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
const MAX_DONE_LISTED = 200;
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
  const [pickedRows] = useState(() => [...picking.picked.values()]);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const [results, setResults] = useState<readonly BulkResult[] | null>(null);
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
      // Without this check the service would refuse every record.
      const isMissing = field.required && text === "";
      return [field.name, isMissing ? { fault: t("bulk.needed", { label: field.label }) } : parseText(field, text)] as const;
    });
    const faults = given.flatMap(([name, each]) => ("fault" in each ? [{ parameter: PREFIX + name, detail: each.fault }] : []));
    if (faults.length) {
      setProblem(new Problem(0, { detail: faults[0]?.detail, errors: faults }));
      return;
    }
    const values = Object.fromEntries(given.map(([name, each]) => [name, "value" in each ? each.value : null]));
    const collected: BulkResult[] = [];
    isStopped.current = false;
    setProblem(null);
    setTried(0);
    await runAll(model, wanted.command, pickedRows, values, (each) => setTried(collected.push(each)), () => isStopped.current);
    setResults(collected);
    if (isClosed.current) {
      showToast(summary(collected));
    }
    await settle(collected);
  };
  /** Refused records, and those that were not tried, stay picked; the others are unpicked. */
  const settle = async (collected: readonly BulkResult[]) => {
    const changed = collected.flatMap((each) => (each.state === "done" && each.now ? [each.now] : []));
    cacheRecords(model, changed);
    const rest = collected.flatMap((each) => (each.state === "refused" || each.state === "left" ? [each.row] : []));
    const now = await reloadRecords(model, rest).catch(() => rest);
    picking.put(new Map(now.map((each) => [each.id, each])));
    rows.reload();
  };
  const close = () => {
    isStopped.current = true;
    isClosed.current = true;
    onClose();
  };
  const count = number(pickedRows.length);
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
            {plural(pickedRows.length, t("bulk.run.one"), t("bulk.run"))}
          </Button>
        ) : (
          results === null && <Button onClick={() => (isStopped.current = true)}>{t("bulk.stop")}</Button>
        )
      }
    >
      <Faults problem={problem} />
      {tried === null ? (
        <>
          <p>{plural(pickedRows.length, t("bulk.each.one", { command }), t("bulk.each", { command }))}</p>
          {isAction && <p>{t("bulk.fits", { n: number(wanted.fits(pickedRows)), of: count })}</p>}
          {isDeletion && <p>{t("bulk.gone")}</p>}
          <FormFields
            {...{ meta, fields, texts, problem }}
            prefix={PREFIX}
            base={null}
            onText={(name, text) => setTexts({ ...texts, [name]: text })}
            onKeep={() => undefined}
          />
          <p class="small quiet">
            {pickedRows.slice(0, SAMPLE).map((each) => titleOf(model, each)).join(", ")}
            {pickedRows.length > SAMPLE && ` … ${t("bulk.more", { n: number(pickedRows.length - SAMPLE) })}`}
          </p>
        </>
      ) : (
        <div class="stack">
          <progress value={tried} max={pickedRows.length} aria-label={t("bulk.progress")} />
          {results === null ? <p role="status">{plural(pickedRows.length, t("bulk.going.one"), t("bulk.going"))}</p> : <Results {...{ model, results }} />}
        </div>
      )}
    </Dialog>
  );
}

function byState(results: readonly BulkResult[]) {
  const of = (state: BulkResult["state"]) => results.filter((each) => each.state === state);
  return { done: of("done"), proposed: of("proposed"), refused: of("refused"), left: of("left") };
}

function summary(results: readonly BulkResult[]): string {
  const { done, proposed, refused, left } = byState(results);
  return t("bulk.ended", {
    done: number(done.length),
    proposed: number(proposed.length),
    refused: number(refused.length),
    left: number(left.length),
  });
}

/** A row for each record that was not done, with the reason, and for those that were done if they are few. */
function Results({ model, results }: { model: Model; results: readonly BulkResult[] }) {
  const { done, proposed, refused, left } = byState(results);
  const rows = [...refused, ...left, ...proposed, ...(done.length > MAX_DONE_LISTED ? [] : done)];
  const name = (row: Row) => (may(model, "get") ? <a href={addressOf(model.name, row.id)}>{titleOf(model, row)}</a> : titleOf(model, row));
  return (
    <>
      <p role="status">{summary(results)}</p>
      {refused.length + left.length > 0 && <p>{t("bulk.still")}</p>}
      {rows.length > 0 && (
        <Table
          caption={t("bulk.results")}
          rows={rows}
          keyOf={(each) => each.row.id}
          columns={[
            { name: "record", label: model.label, cell: ({ row }) => name(row) },
            { name: "became", label: t("bulk.became"), cell: (each) => <ResultCell result={each} /> },
          ]}
        />
      )}
    </>
  );
}

function ResultCell({ result }: { result: BulkResult }) {
  switch (result.state) {
    case "refused":
      return <strong class="refused">{result.why}</strong>;
    case "proposed":
      return <a href={`/approvals?plan=${encodeURIComponent(result.planId)}`}>{t("proposed")}</a>;
    default:
      return t(`bulk.${result.state}`);
  }
}
