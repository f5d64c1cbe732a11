// The audit: who did what to which record, filtered, each entry with an address of its own, and whether it is whole.
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { SelectField, TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult, Empty } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { setQuery, query } from "../../shared/router";
import { dateTime, translator } from "../../shared/i18n";
import { conditions, type Entry, linkTo, filterNames } from "../audit/filter";
import { IntegrityCheck } from "../audit/integrity_check";
import { Actor } from "../audit/actor";
import { type Meta, type Model, run } from "../api";
import { canList, may, modelOf } from "../models";

const t = translator("audit");

const SHOWN = 50;
const DATES = ["since", "until"];

export function Audit({ meta }: { meta: Meta }) {
  const model = modelOf(meta, "audit_entry");
  return model && canList(model) ? <Entries meta={meta} model={model} /> : <NotFound />;
}

function Entries({ meta, model }: { meta: Meta; model: Model }) {
  const filter = conditions(model);
  const offset = Math.max(0, Number(query.value.get("offset")) || 0);
  const order = [{ field: "at", dir: "desc" }];
  const about = JSON.stringify(filter);
  const found = useRequest(
    (signal) => run<Entry[]>("audit_entry", "list", { filter, order, limit: SHOWN + 1, offset }, signal),
    [about, offset],
    { keepsPrevious: true },
  );
  const download = async () => {
    const { exportRawCsv: exportedRaw } = await import("../list/export");
    await exportedRaw(model, { filter, order });
  };
  return (
    <div class="stack">
      <Heading title={t("title")}>
        {may(model, "export") && <Button onClick={() => void download()}>{t("export")}</Button>}
      </Heading>
      <p class="quiet">{t("lead")}</p>
      {may(model, "verify") && <IntegrityCheck />}
      <Asking key={query.value.toString()} {...{ meta, model }} />
      <RequestResult of={found}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty title={t("none")}>
              <p>{t("none.text")}</p>
            </Empty>
          ) : (
            <>
              <Shown {...{ meta, entries: value.slice(0, SHOWN) }} />
              <nav class="pager" aria-label={t("pages")}>
                <Button disabled={offset === 0} onClick={() => setQuery({ offset: String(Math.max(0, offset - SHOWN) || "") })}>
                  {t("newer")}
                </Button>
                <Button disabled={value.length <= SHOWN} onClick={() => setQuery({ offset: String(offset + SHOWN) })}>
                  {t("older")}
                </Button>
              </nav>
            </>
          )
        }
      </RequestResult>
    </div>
  );
}

function Asking({ meta, model }: { meta: Meta; model: Model }) {
  const known = filterNames(model);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const said = known.map((name) => [name, String(given.get(name) ?? "")] as const);
    setQuery({ ...Object.fromEntries(said), offset: "" }, { replaces: false });
  };
  const now = (name: string) => query.value.get(name) ?? "";
  const models = [["", t("any")], ...meta.models.map((each) => [each.name, each.plural] as const)] as const;
  return (
    <form class="panel-box stack" onSubmit={submit} aria-label={t("filter")}>
      <div class="filters tight">
        {known.map((name) =>
          name === "model" ? (
            <SelectField key={name} name={name} label={t("model")} value={now(name)} onChange={(model) => setQuery({ model, offset: "" })} options={models} />
          ) : (
            <TextField
              key={name}
              name={name}
              label={t(name as "command")}
              type={DATES.includes(name) ? "date" : "text"}
              value={now(name)}
            />
          ),
        )}
      </div>
      <div class="row">
        <Button type="submit">{t("filter")}</Button>
        <Button look="plain" onClick={() => setQuery({ ...Object.fromEntries(known.map((name) => [name, ""])), offset: "" })}>
          {t("clear")}
        </Button>
      </div>
    </form>
  );
}

function Shown({ meta, entries }: { meta: Meta; entries: readonly Entry[] }) {
  return (
    <Table
      caption={t("title")}
      rows={entries}
      keyOf={(each) => each.id}
      columns={[
        {
          name: "at",
          label: t("at"),
          cell: (each) => (
            <a href={linkTo(each)}>
              <time dateTime={each.at}>{each.at ? dateTime(each.at) : each.id.slice(0, 8)}</time>
            </a>
          ),
        },
        { name: "command", label: t("command"), cell: (each) => <code>{each.command ?? "–"}</code> },
        { name: "who", label: t("who"), cell: (each) => <Actor meta={meta} entry={each} /> },
        { name: "record", label: t("model"), cell: (each) => modelOf(meta, each.model ?? "")?.label ?? each.model ?? "–" },
        { name: "fields", label: t("fields"), cell: (each) => <span class="small wraps">{(each.fields ?? "").replaceAll(",", ", ")}</span> },
      ]}
    />
  );
}
