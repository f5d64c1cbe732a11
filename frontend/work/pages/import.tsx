// Many records from a CSV file: its columns mapped to fields, a trial run with what is wrong in each row, then the run.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Faults, Field, SelectField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Missing } from "../../shared/components/shell";
import { Table } from "../../shared/components/table";
import { Problem } from "../../shared/problem";
import { counted, number } from "../../shared/words";
import { attempt, type Meta, type Model } from "../api";
import { parsed } from "../import/csv";
import { choices, guessed, inWords, mapped } from "../import/mapping";
import { say } from "../import/say";
import { may, modelOf } from "../models";
import { Proposed } from "../record/proposed";
import { say as ofRecord } from "../record/say";

interface Imported {
  rows: number;
  created: number;
  dry_run: boolean;
  errors: { row: number; error: string }[];
}

export function Import({ meta, name }: { meta: Meta; name: string }) {
  const model = modelOf(meta, name);
  return model && may(model, "import") ? <Asking model={model} /> : <Missing />;
}

function Asking({ model }: { model: Model }) {
  const [rows, setRows] = useState<string[][]>([]);
  const [mapping, setMapping] = useState<string[]>([]);
  const [told, setTold] = useState<Imported | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [planId, setPlanId] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const choose = async (file: File | undefined) => {
    const read = file ? parsed(await file.text()) : [];
    setRows(read);
    setMapping(guessed(model, read[0] ?? []));
    setTold(null);
    setProblem(null);
  };
  const run = async (isTrial: boolean) => {
    setBusy(true);
    setProblem(null);
    try {
      const input = { csv: mapped(model, rows, mapping), dry_run: isTrial };
      const done = await attempt<Imported>(model.name, "import", input);
      setTold(done.isDone ? done.value : null);
      setPlanId(done.isDone ? null : done.planId);
    } catch (error) {
      setTold(null);
      setProblem(error instanceof Problem ? error : new Problem(0, { detail: (error as Error).message }));
    }
    setBusy(false);
  };
  const count = Math.max(0, rows.length - 1);
  const isTried = told !== null && told.dry_run && told.errors.length === 0;
  return (
    <div class="stack">
      <nav>
        <a href={`/models/${model.name}`}>← {ofRecord("back", { model: model.plural })}</a>
      </nav>
      <Heading title={say("title", { model: model.plural })} />
      <p class="quiet">{say("lead")}</p>
      <Faults problem={problem} />
      {planId && <Proposed planId={planId} />}
      <Field name="file" label={say("file")}>
        {(given) => (
          <input {...given} type="file" accept=".csv,text/csv,text/plain" onChange={(event) => void choose(event.currentTarget.files?.[0])} />
        )}
      </Field>
      {count > 0 && (
        <>
          <h2>{say("map")}</h2>
          <p class="quiet">{counted(count, say("rows.one"), say("rows"))}</p>
          <div class="form">
            {rows[0]?.map((column, place) => (
              <SelectField
                key={place}
                name={`column-${place}`}
                label={column || `#${place + 1}`}
                help={`${say("sample")}: ${rows[1]?.[place] ?? ""}`}
                value={mapping[place] ?? ""}
                onChange={(next) => (setMapping(mapping.with(place, next)), setTold(null))}
                options={[["", say("ignore")], ...choices(model)]}
              />
            ))}
          </div>
          <div class="row">
            <Button busy={isBusy} onClick={() => void run(true)}>
              {say("dry")}
            </Button>
            <Button look="strong" busy={isBusy} disabled={!isTried} onClick={() => void run(false)}>
              {counted(count, say("run.one"), say("run"))}
            </Button>
          </div>
        </>
      )}
      {told && <Told model={model} told={told} />}
    </div>
  );
}

function Told({ model, told }: { model: Model; told: Imported }) {
  if (told.errors.length) {
    const title = counted(told.errors.length, say("errors.one"), say("errors"));
    return (
      <section class="stack" role="alert">
        <h2>{title}</h2>
        <Table
          caption={title}
          rows={told.errors}
          keyOf={(each) => String(each.row)}
          columns={[
            { name: "row", label: say("row"), cell: (each) => number(each.row) },
            { name: "error", label: say("error"), cell: (each) => inWords(model, each.error) },
          ]}
        />
      </section>
    );
  }
  return (
    <p class="notice" role="status">
      {told.dry_run
        ? counted(told.rows, say("fine.one"), say("fine"))
        : counted(told.created, say("done.one"), say("done"))}{" "}
      {!told.dry_run && <a href={`/models/${model.name}`}>{say("see")}</a>}
    </p>
  );
}
