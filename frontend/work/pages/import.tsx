// Imports records from a CSV file: maps its columns to fields, shows errors of a dry run, then imports.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Faults, Field, SelectField } from "../../shared/components/field";
import { NotFound } from "../../shared/components/shell";
import { Table } from "../../shared/components/table";
import { Problem } from "../../shared/problem";
import { plural, number, translator } from "../../shared/i18n";
import { attempt, type Meta, type Model } from "../api";
import { fieldOptions, inPlainWords, textOf } from "../import/mapping";
import { workflowField, mayRun, modelOf } from "../models";
import { ProposedNotice } from "../record/proposed_notice";
import { type DateOrder, type Decimal, defaultNotation } from "../values/csv_notation";
import { CrumbHeading } from "../shell/crumb_heading";
import "../import/import.css";

const t = translator("import");
const tRecord = translator("record");

interface ImportReport {
  rows: number;
  created: number;
  unchanged: number;
  dry_run: boolean;
  errors: { row: number; error: string }[];
  columns: { header: string; field: string | null }[];
}

const BEGINNING = 300;
const DECIMALS = [[".", "1,234.50"], [",", "1.234,50"]] as const;
const ORDERS = ["ymd", "dmy", "mdy"] as const;

export function Import({ meta, name }: { meta: Meta; name: string }) {
  const model = modelOf(meta, name);
  const settings = modelOf(meta, "setting");
  // A person who may import settings counts as an administrator.
  const canRestore = settings !== undefined && mayRun(settings, "import");
  return model && mayRun(model, "import") ? <ImportForm {...{ model, canRestore }} /> : <NotFound />;
}

function ImportForm({ model, canRestore }: { model: Model; canRestore: boolean }) {
  const [text, setText] = useState("");
  const [heads, setHeads] = useState<string[]>([]);
  const [count, setCount] = useState(0);
  const [mapping, setMapping] = useState<string[]>([]);
  const [decimal, setDecimal] = useState<Decimal>(defaultNotation.decimal);
  const [order, setOrder] = useState<DateOrder>(defaultNotation.date_order);
  const [restores, setRestores] = useState(false);
  const [report, setReport] = useState<ImportReport | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [planId, setPlanId] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  /** Call the API. Return null if it refuses, which is shown, or if the import became a plan. */
  const send = async (extraInput: object): Promise<ImportReport | null> => {
    setBusy(true);
    setProblem(null);
    setReport(null);
    try {
      const outcome = await attempt<ImportReport>(model.name, "import", { decimal, date_order: order, ...extraInput });
      setPlanId(outcome.isDone ? null : outcome.planId);
      return outcome.isDone ? outcome.value : null;
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, { detail: (error as Error).message }));
      return null;
    } finally {
      setBusy(false);
    }
  };
  const choose = async (file: File | undefined) => {
    setHeads([]);
    const csv = file ? await textOf(file) : "";
    // The API proposes the mapping of the columns.
    const checkResult = file ? await send({ csv, dry_run: true }) : null;
    if (checkResult) {
      const fieldNames = new Set(fieldOptions(model, restores).map(([value]) => value));
      setText(csv);
      setCount(checkResult.rows);
      setHeads(checkResult.columns.map((column) => column.header));
      setMapping(checkResult.columns.map(({ field }) => (field && fieldNames.has(field) ? field : "")));
    }
  };
  const run = async (isTrial: boolean) => {
    const columns = mapping.map((fieldName) => fieldName || null);
    const restore = restores ? { restore: true } : {};
    setReport(await send({ csv: text, dry_run: isTrial, columns, ...restore }));
  };
  const restoring = (isRestoring: boolean) => {
    setRestores(isRestoring);
    setReport(null);
    const fieldNames = fieldOptions(model, isRestoring).map(([value]) => value);
    setMapping(mapping.map((fieldName, index) => fieldName || (isRestoring && fieldNames.includes(heads[index] ?? "") ? (heads[index] ?? "") : "")));
  };
  const isTried = report !== null && report.dry_run && report.errors.length === 0;
  return (
    <div class="stack">
      <CrumbHeading href={`/models/${model.name}`} label={tRecord("back", { model: model.plural })} title={t("title", { model: model.plural })} />
      <p class="quiet">{t("lead")}</p>
      {!canRestore && workflowField(model) && <p class="quiet">{t("restore.needed")}</p>}
      <Faults problem={problem} />
      {planId && <ProposedNotice planId={planId} />}
      <div class="csv-file">
        <Field name="file" label={t("file")} help={t("file.help")}>
          {(controlAttributes) => (
            <input {...controlAttributes} type="file" accept=".csv,.tsv,.txt,text/csv,text/plain,text/tab-separated-values" onChange={(event) => void choose(event.currentTarget.files?.[0])} />
          )}
        </Field>
      </div>
      {heads.length > 0 && (
        <>
          <h2>{t("map")}</h2>
          <p class="quiet">{plural(count, t("rows.one"), t("rows"))}</p>
          <figure>
            <figcaption class="small quiet">{t("sample")}</figcaption>
            <pre class="small">{text.slice(0, BEGINNING).split(/\r\n|\r|\n/).slice(0, 3).join("\n")}</pre>
          </figure>
          <div class="form">
            <SelectField name="decimal" label={t("decimal")} value={decimal} options={DECIMALS} onChange={(newDecimal) => (setDecimal(newDecimal as Decimal), setReport(null))} />
            <SelectField name="dates" label={t("dates")} value={order} options={ORDERS.map((order) => [order, t(order)] as const)} onChange={(newOrder) => (setOrder(newOrder as DateOrder), setReport(null))} />
            {canRestore && (
              <Field name="restore" label={t("restore")} help={t("restore.help")}>
                {(controlAttributes) => <input {...controlAttributes} class="" type="checkbox" checked={restores} onChange={(event) => restoring(event.currentTarget.checked)} />}
              </Field>
            )}
            {heads.map((column, index) => (
              <SelectField
                key={index}
                name={`column-${index}`}
                label={column || `#${index + 1}`}
                value={mapping[index] ?? ""}
                onChange={(fieldName) => (setMapping(mapping.with(index, fieldName)), setReport(null))}
                options={[["", t("ignore")], ...fieldOptions(model, restores)]}
              />
            ))}
          </div>
          <div class="row">
            <Button busy={isBusy} onClick={() => void run(true)}>
              {t("dry")}
            </Button>
            <Button look="strong" busy={isBusy} disabled={!isTried} onClick={() => void run(false)}>
              {plural(count, t("run.one"), t("run"))}
            </Button>
          </div>
        </>
      )}
      {report && <ReportView model={model} told={report} />}
    </div>
  );
}

function ReportView({ model, told }: { model: Model; told: ImportReport }) {
  if (told.errors.length) {
    const title = plural(told.errors.length, t("errors.one"), t("errors"));
    return (
      <section class="stack" role="alert">
        <h2>{title}</h2>
        <Table
          caption={title}
          rows={told.errors}
          keyOf={(error) => String(error.row)}
          columns={[
            { name: "row", label: t("row"), cell: (error) => number(error.row) },
            { name: "error", label: t("error"), cell: (error) => inPlainWords(model, error.error) },
          ]}
        />
      </section>
    );
  }
  return (
    <p class="notice" role="status">
      {told.dry_run
        ? plural(told.rows, t("fine.one"), t("fine"))
        : plural(told.created, t("done.one"), t("done"))}{" "}
      {told.unchanged > 0 && `${plural(told.unchanged, t("unchanged.one"), t("unchanged"))} `}
      {!told.dry_run && <a href={`/models/${model.name}`}>{t("see")}</a>}
    </p>
  );
}
