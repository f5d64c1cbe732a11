// The page that imports records from a CSV file: it maps columns to fields, shows the errors of a dry run, and imports.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { FormErrors, Field, SelectField } from "../../shared/components/field";
import { NotFound } from "../../shared/components/shell";
import { Table } from "../../shared/components/table";
import { Problem } from "../../shared/problem";
import { plural, number, translator } from "../../shared/i18n";
import { runOrPropose, type Meta, type Model } from "../api";
import { fieldOptions, type Mapping, withLabels, readCsvFile } from "../import/mapping";
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

const SAMPLE_LENGTH = 300;
const DECIMALS = [[".", "1,234.50"], [",", "1.234,50"]] as const;
const DATE_ORDERS = ["ymd", "dmy", "mdy"] as const;

export function Import({ meta, name }: { meta: Meta; name: string }) {
  const model = modelOf(meta, name);
  const settings = modelOf(meta, "setting");
  // Only administrators may import with `restore`. A person who may import settings is an administrator.
  const canRestore = settings !== undefined && mayRun(settings, "import");
  return model && mayRun(model, "import") ? <ImportForm {...{ model, canRestore }} /> : <NotFound />;
}

function ImportForm({ model, canRestore }: { model: Model; canRestore: boolean }) {
  const [text, setText] = useState("");
  const [headers, setHeaders] = useState<string[]>([]);
  const [rowCount, setRowCount] = useState(0);
  const [mapping, setMapping] = useState<Mapping>([]);
  const [decimal, setDecimal] = useState<Decimal>(defaultNotation.decimal);
  const [order, setOrder] = useState<DateOrder>(defaultNotation.date_order);
  const [isRestore, setIsRestore] = useState(false);
  const [report, setReport] = useState<ImportReport | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [planId, setPlanId] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  /** Send the import to the API and return the report. Return null if the API refuses the import or makes a plan of it;
   *  then the page shows the error or the plan. */
  const send = async (extraInput: object): Promise<ImportReport | null> => {
    setBusy(true);
    setProblem(null);
    setReport(null);
    try {
      const outcome = await runOrPropose<ImportReport>(model.name, "import", { decimal, date_order: order, ...extraInput });
      setPlanId(outcome.isDone ? null : outcome.planId);
      return outcome.isDone ? outcome.value : null;
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, { detail: (error as Error).message }));
      return null;
    } finally {
      setBusy(false);
    }
  };
  const chooseFile = async (file: File | undefined) => {
    setHeaders([]);
    const csv = file ? await readCsvFile(file) : "";
    // The API proposes the mapping of the columns.
    const checkResult = file ? await send({ csv, dry_run: true }) : null;
    if (checkResult) {
      const fieldNames = new Set(fieldOptions(model, isRestore).map(([value]) => value));
      setText(csv);
      setRowCount(checkResult.rows);
      setHeaders(checkResult.columns.map((column) => column.header));
      setMapping(checkResult.columns.map(({ field }) => (field && fieldNames.has(field) ? field : "")));
    }
  };
  const run = async (isDryRun: boolean) => {
    const columns = mapping.map((fieldName) => fieldName || null);
    const restore = isRestore ? { restore: true } : {};
    setReport(await send({ csv: text, dry_run: isDryRun, columns, ...restore }));
  };
  const changeRestore = (isChecked: boolean) => {
    setIsRestore(isChecked);
    setReport(null);
    const fieldNames = fieldOptions(model, isChecked).map(([value]) => value);
    setMapping(mapping.map((fieldName, index) => fieldName || (isChecked && fieldNames.includes(headers[index] ?? "") ? (headers[index] ?? "") : "")));
  };
  const hasPassedDryRun = report !== null && report.dry_run && report.errors.length === 0;
  return (
    <div class="stack">
      <CrumbHeading href={`/models/${model.name}`} label={tRecord("back", { model: model.plural })} title={t("title", { model: model.plural })} />
      <p class="quiet">{t("lead")}</p>
      {!canRestore && workflowField(model) && <p class="quiet">{t("restore.needed")}</p>}
      <FormErrors problem={problem} />
      {planId && <ProposedNotice planId={planId} />}
      <div class="csv-file">
        <Field name="file" label={t("file")} help={t("file.help")}>
          {(controlAttributes) => (
            <input {...controlAttributes} type="file" accept=".csv,.tsv,.txt,text/csv,text/plain,text/tab-separated-values" onChange={(event) => void chooseFile(event.currentTarget.files?.[0])} />
          )}
        </Field>
      </div>
      {headers.length > 0 && (
        <>
          <h2>{t("map")}</h2>
          <p class="quiet">{plural(rowCount, t("rows.one"), t("rows"))}</p>
          <figure>
            <figcaption class="small quiet">{t("sample")}</figcaption>
            <pre class="small">{text.slice(0, SAMPLE_LENGTH).split(/\r\n|\r|\n/).slice(0, 3).join("\n")}</pre>
          </figure>
          <div class="form">
            <SelectField name="decimal" label={t("decimal")} value={decimal} options={DECIMALS} onChange={(newDecimal) => (setDecimal(newDecimal as Decimal), setReport(null))} />
            <SelectField name="dates" label={t("dates")} value={order} options={DATE_ORDERS.map((order) => [order, t(order)] as const)} onChange={(newOrder) => (setOrder(newOrder as DateOrder), setReport(null))} />
            {canRestore && (
              <Field name="restore" label={t("restore")} help={t("restore.help")}>
                {(controlAttributes) => <input {...controlAttributes} class="" type="checkbox" checked={isRestore} onChange={(event) => changeRestore(event.currentTarget.checked)} />}
              </Field>
            )}
            {headers.map((column, index) => (
              <SelectField
                key={index}
                name={`column-${index}`}
                label={column || `#${index + 1}`}
                value={mapping[index] ?? ""}
                onChange={(fieldName) => (setMapping(mapping.with(index, fieldName)), setReport(null))}
                options={[["", t("ignore")], ...fieldOptions(model, isRestore)]}
              />
            ))}
          </div>
          <div class="row">
            <Button busy={isBusy} onClick={() => void run(true)}>
              {t("dry")}
            </Button>
            <Button variant="strong" busy={isBusy} disabled={!hasPassedDryRun} onClick={() => void run(false)}>
              {plural(rowCount, t("run.one"), t("run"))}
            </Button>
          </div>
        </>
      )}
      {report && <ReportView model={model} report={report} />}
    </div>
  );
}

function ReportView({ model, report }: { model: Model; report: ImportReport }) {
  if (report.errors.length) {
    const title = plural(report.errors.length, t("errors.one"), t("errors"));
    return (
      <section class="stack" role="alert">
        <h2>{title}</h2>
        <Table
          caption={title}
          rows={report.errors}
          keyOf={(error) => String(error.row)}
          columns={[
            { name: "row", label: t("row"), cell: (error) => number(error.row) },
            { name: "error", label: t("error"), cell: (error) => withLabels(model, error.error) },
          ]}
        />
      </section>
    );
  }
  return (
    <p class="notice" role="status">
      {report.dry_run
        ? plural(report.rows, t("fine.one"), t("fine"))
        : plural(report.created, t("done.one"), t("done"))}{" "}
      {report.unchanged > 0 && `${plural(report.unchanged, t("unchanged.one"), t("unchanged"))} `}
      {!report.dry_run && <a href={`/models/${model.name}`}>{t("see")}</a>}
    </p>
  );
}
