// The dialog of a bulk command: asks for inputs, shows the progress, then the result for each record.
import { useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { FormErrors } from "../../shared/components/field";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { plural, number, translator } from "../../shared/i18n";
import type { Meta, Model, Row } from "../api";
import { addressOf, fieldOf, mayRun, titleOf } from "../models";
import { FormFields } from "../record/form_fields";
import { cacheRecords } from "../referenced_records";
import { parseText } from "../values/field_text";
import { type BulkResult, reloadRecords, runAll, type BulkCommand } from "./bulk";
import type { RowSelection } from "./selection";
import type { Rows } from "./rows";

const t = translator("list");

const SAMPLE_SIZE = 5;
const MAX_DONE_LISTED = 200;
const ID_PREFIX = "bulk-";

interface Props {
  meta: Meta;
  model: Model;
  rows: Rows;
  selection: RowSelection;
  bulkCommand: BulkCommand;
  onClose: () => void;
}

export function BulkDialog({ meta, model, rows, selection, bulkCommand, onClose }: Props) {
  const [selectedRows] = useState(() => [...selection.selectedRows.values()]);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const [results, setResults] = useState<readonly BulkResult[] | null>(null);
  const [triedCount, setTriedCount] = useState<number | null>(null);
  const isStopped = useRef(false);
  const isClosed = useRef(false);
  const isDeletion = bulkCommand.command === "delete";
  const isAction = !["update", "delete"].includes(bulkCommand.command);
  const fields = bulkCommand.inputs.flatMap((name) => {
    const field = fieldOf(model, name);
    return field ? [{ ...field, readonly: false, required: isAction || field.required }] : [];
  });
  const run = async () => {
    const parsedInputs = fields.map((field) => {
      const text = texts[field.name] ?? "";
      // Without this check the service would refuse every record.
      const isMissing = field.required && text === "";
      return [field.name, isMissing ? { error: t("bulk.needed", { label: field.label }) } : parseText(field, text)] as const;
    });
    const errors = parsedInputs.flatMap(([name, input]) => ("error" in input ? [{ parameter: ID_PREFIX + name, detail: input.error }] : []));
    if (errors.length) {
      setProblem(new Problem(0, { detail: errors[0]?.detail, errors }));
      return;
    }
    const values = Object.fromEntries(parsedInputs.map(([name, input]) => [name, "value" in input ? input.value : null]));
    const bulkResults: BulkResult[] = [];
    isStopped.current = false;
    setProblem(null);
    setTriedCount(0);
    await runAll(model, bulkCommand.command, selectedRows, values, (result) => setTriedCount(bulkResults.push(result)), () => isStopped.current);
    setResults(bulkResults);
    if (isClosed.current) {
      showToast(summary(bulkResults));
    }
    await updateSelection(bulkResults);
  };
  /** Refused records, and those that were not tried, stay selected; the selection of the others ends. */
  const updateSelection = async (bulkResults: readonly BulkResult[]) => {
    const updatedRows = bulkResults.flatMap((bulkResult) => (bulkResult.state === "done" && bulkResult.updatedRow ? [bulkResult.updatedRow] : []));
    cacheRecords(model, updatedRows);
    const unfinishedRows = bulkResults.flatMap((bulkResult) => (bulkResult.state === "refused" || bulkResult.state === "skipped" ? [bulkResult.row] : []));
    const reloadedRows = await reloadRecords(model, unfinishedRows).catch(() => unfinishedRows);
    selection.replace(new Map(reloadedRows.map((reloadedRow) => [reloadedRow.id, reloadedRow])));
    rows.reload();
  };
  const close = () => {
    isStopped.current = true;
    isClosed.current = true;
    onClose();
  };
  const count = number(selectedRows.length);
  const command = `${model.name}.${bulkCommand.command}`;
  return (
    <Dialog
      title={`${bulkCommand.label}: ${t("picked.n", { n: count })}`}
      variant="wide"
      isOpen
      onClose={close}
      actions={
        triedCount === null ? (
          <Button variant={isDeletion ? "risky" : "strong"} onClick={() => void run()}>
            {plural(selectedRows.length, t("bulk.run.one"), t("bulk.run"))}
          </Button>
        ) : (
          results === null && <Button onClick={() => (isStopped.current = true)}>{t("bulk.stop")}</Button>
        )
      }
    >
      <FormErrors problem={problem} />
      {triedCount === null ? (
        <>
          <p>{plural(selectedRows.length, t("bulk.each.one", { command }), t("bulk.each", { command }))}</p>
          {isAction && <p>{t("bulk.fits", { n: number(bulkCommand.countAllowed(selectedRows)), of: count })}</p>}
          {isDeletion && <p>{t("bulk.gone")}</p>}
          <FormFields
            {...{ meta, fields, texts, problem }}
            prefix={ID_PREFIX}
            base={null}
            onText={(name, text) => setTexts({ ...texts, [name]: text })}
            onKeep={() => undefined}
          />
          <p class="small quiet">
            {selectedRows.slice(0, SAMPLE_SIZE).map((selectedRow) => titleOf(model, selectedRow)).join(", ")}
            {selectedRows.length > SAMPLE_SIZE && ` … ${t("bulk.more", { n: number(selectedRows.length - SAMPLE_SIZE) })}`}
          </p>
        </>
      ) : (
        <div class="stack">
          <progress value={triedCount} max={selectedRows.length} aria-label={t("bulk.progress")} />
          {results === null ? <p role="status">{plural(selectedRows.length, t("bulk.going.one"), t("bulk.going"))}</p> : <Results {...{ model, results }} />}
        </div>
      )}
    </Dialog>
  );
}

function byState(results: readonly BulkResult[]) {
  const withState = (state: BulkResult["state"]) => results.filter((result) => result.state === state);
  return { done: withState("done"), proposed: withState("proposed"), refused: withState("refused"), skipped: withState("skipped") };
}

function summary(results: readonly BulkResult[]): string {
  const { done, proposed, refused, skipped } = byState(results);
  return t("bulk.ended", {
    done: number(done.length),
    proposed: number(proposed.length),
    refused: number(refused.length),
    left: number(skipped.length),
  });
}

/** A row for each record that was not done, with the reason, and for those that were done if they are few. */
function Results({ model, results }: { model: Model; results: readonly BulkResult[] }) {
  const { done, proposed, refused, skipped } = byState(results);
  const rows = [...refused, ...skipped, ...proposed, ...(done.length > MAX_DONE_LISTED ? [] : done)];
  const recordLink = (row: Row) => (mayRun(model, "get") ? <a href={addressOf(model.name, row.id)}>{titleOf(model, row)}</a> : titleOf(model, row));
  return (
    <>
      <p role="status">{summary(results)}</p>
      {refused.length + skipped.length > 0 && <p>{t("bulk.still")}</p>}
      {rows.length > 0 && (
        <Table
          caption={t("bulk.results")}
          rows={rows}
          keyOf={(row) => row.row.id}
          columns={[
            { name: "record", label: model.label, cell: ({ row }) => recordLink(row) },
            { name: "became", label: t("bulk.became"), cell: (row) => <ResultCell result={row} /> },
          ]}
        />
      )}
    </>
  );
}

function ResultCell({ result }: { result: BulkResult }) {
  switch (result.state) {
    case "refused":
      return <strong class="refused">{result.reason}</strong>;
    case "proposed":
      return <a href={`/approvals?plan=${encodeURIComponent(result.planId)}`}>{t("proposed")}</a>;
    default:
      return t(`bulk.${result.state}`);
  }
}
