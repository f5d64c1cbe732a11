// The audit log: who did what to which record, and the check of its integrity.
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult, Empty } from "../../shared/components/states";
import { setQuery, query } from "../../shared/router";
import { translator } from "../../shared/i18n";
import { conditions, type Entry, filterNames } from "../audit/filter";
import { EntryRows } from "../audit/entry_rows";
import { useIntegrityCheck } from "../audit/integrity_check";
import { type Meta, type Model, run } from "../api";
import { canList, mayRun, modelOf } from "../models";
import "../widgets/widgets.css";
import "../audit/audit.css";

const t = translator("audit");

const PAGE_SIZE = 50;
const DATES = ["since", "until"];

export function Audit({ meta }: { meta: Meta }) {
  const model = modelOf(meta, "audit_entry");
  return model && canList(model) ? <Entries meta={meta} model={model} /> : <NotFound />;
}

function Entries({ meta, model }: { meta: Meta; model: Model }) {
  const filter = conditions(model);
  const offset = Math.max(0, Number(query.value.get("offset")) || 0);
  const order = [{ field: "at", dir: "desc" }];
  const filterKey = JSON.stringify(filter);
  const entriesRequest = useRequest(
    (signal) => run<Entry[]>("audit_entry", "list", { filter, order, limit: PAGE_SIZE + 1, offset }, signal),
    [filterKey, offset],
    { keepsPrevious: true },
  );
  const check = useIntegrityCheck();
  const hasCheck = mayRun(model, "verify");
  const download = async () => {
    const { exportRawCsv: exportedRaw } = await import("../list/csv_export");
    await exportedRaw(model, { filter, order });
  };
  return (
    <div class="page">
      <Heading title={t("title")}>
        {hasCheck && check.chip}
        <span class="right" />
        {mayRun(model, "export") && (
          <Button tight onClick={() => void download()}>
            <Icon name="download" />
            {t("export")}
          </Button>
        )}
      </Heading>
      <FilterForm key={query.value.toString()} {...{ meta, model }} />
      {check.details}
      <RequestResult request={entriesRequest}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty icon="history" title={t("none")}>
              <p>{t("none.text")}</p>
            </Empty>
          ) : (
            <>
              <EntryRows {...{ meta, entries: value.slice(0, PAGE_SIZE) }} />
              <nav class="foot-bar" aria-label={t("pages")}>
                <span>{t("lead")}</span>
                <span class="right" />
                <Button tight variant="plain" disabled={offset === 0} onClick={() => setQuery({ offset: String(Math.max(0, offset - PAGE_SIZE) || "") })}>
                  {t("newer")}
                </Button>
                <Button tight variant="plain" disabled={value.length <= PAGE_SIZE} onClick={() => setQuery({ offset: String(offset + PAGE_SIZE) })}>
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

/** The filters that are always shown; the others are ids. */
const ALWAYS_SHOWN = ["since", "until", "model", "command", "agent"];

function FilterForm({ meta, model }: { meta: Meta; model: Model }) {
  const names = filterNames(model);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const formData = new FormData(event.currentTarget as HTMLFormElement);
    const filters = names.map((name) => [name, String(formData.get(name) ?? "")] as const);
    setQuery({ ...Object.fromEntries(filters), offset: "" }, { replaces: false });
  };
  const now = (name: string) => query.value.get(name) ?? "";
  const models = [["", t("any")], ...meta.models.map((model) => [model.name, model.plural] as const)] as const;
  const hiddenNames = names.filter((name) => !ALWAYS_SHOWN.includes(name));
  const control = (name: string) => (
    <label key={name} class="audit-filter">
      <span>{t(name as "command")}</span>
      {name === "model" ? (
        <select class="input tight" id={name} name={name} value={now(name)} onChange={(event) => setQuery({ model: event.currentTarget.value, offset: "" })}>
          {models.map(([value, label]) => (
            <option key={value} value={value} selected={value === now(name)}>
              {label}
            </option>
          ))}
        </select>
      ) : (
        <input class="input tight" id={name} name={name} {...({ type: DATES.includes(name) ? "date" : "text" } as { type: "text" })} value={now(name)} />
      )}
    </label>
  );
  return (
    <form class="tool-bar audit-bar" onSubmit={submit} aria-label={t("filter")}>
      {names.filter((name) => ALWAYS_SHOWN.includes(name)).map(control)}
      <details class="audit-more" open={hiddenNames.some((name) => now(name))}>
        <summary>{t("more")}</summary>
        <div>{hiddenNames.map(control)}</div>
      </details>
      <Button type="submit" tight>
        {t("filter")}
      </Button>
      {names.some((name) => now(name)) && (
        <Button tight variant="plain" onClick={() => setQuery({ ...Object.fromEntries(names.map((name) => [name, ""])), offset: "" })}>
          {t("clear")}
        </Button>
      )}
    </form>
  );
}
