// What agents see of the fields of each model: the value, or a placeholder token. For administrators.
import { Chip } from "../../shared/components/chip";
import { TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { Empty } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { number, plural, translator } from "../../shared/i18n";
import { query, setQuery } from "../../shared/router";
import type { Field, Meta, Model } from "../api";
import { businessModels } from "../models";
import { managesPeople } from "../users/people";
import "./data_map.css";

const t = translator("data");

const SHOWN = ["all", "tokens", "clear"] as const;
/** The maximum number of fields with which all models are shown opened. */
const MAX_FIELDS_OPEN = 200;

export function DataMap({ meta }: { meta: Meta }) {
  return managesPeople(meta) ? <Content meta={meta} /> : <NotFound />;
}

function Content({ meta }: { meta: Meta }) {
  const chosenFilter = SHOWN.find((name) => name === query.value.get("show")) ?? "all";
  const search = (query.value.get("find") ?? "").toLowerCase();
  const fits = (model: Model, field: Field) =>
    (chosenFilter === "all" || field.is_personal === (chosenFilter === "tokens")) &&
    [model.plural, model.name, field.label, field.name].some((text) => text.toLowerCase().includes(search));
  const models = businessModels(meta)
    .map((model) => ({ model, fields: model.fields.filter((field) => fits(model, field)) }))
    .filter(({ fields }) => fields.length > 0);
  const fieldCount = models.reduce((sum, { fields }) => sum + fields.length, 0);
  return (
    <div class="data-map stack">
      <Heading title={t("title")}>
        <div class="segments" role="group" aria-label={t("show")}>
          {SHOWN.map((name) => (
            <button key={name} type="button" aria-pressed={name === chosenFilter} onClick={() => setQuery({ show: name === "all" ? "" : name })}>
              {t(`show.${name}`)}
            </button>
          ))}
        </div>
      </Heading>
      <p class="quiet">{t("lead")}</p>
      <TextField name="find" type="search" label={t("find")} value={query.value.get("find") ?? ""} onInput={(event) => setQuery({ find: event.currentTarget.value })} />
      {models.length === 0 ? (
        <Empty title={t("none")} icon="eye">
          <p>{t("none.text")}</p>
        </Empty>
      ) : (
        models.map(({ model, fields }) => <ModelFields key={model.name} {...{ model, fields }} isOpen={fieldCount <= MAX_FIELDS_OPEN} />)
      )}
    </div>
  );
}

function ModelFields({ model, fields, isOpen }: { model: Model; fields: Field[]; isOpen: boolean }) {
  const tokenCount = fields.filter((field) => field.is_personal).length;
  return (
    <details open={isOpen}>
      <summary>
        <b>{model.plural}</b>{" "}
        <span class="quiet">{plural(fields.length, t("fields.one"), t("fields"))}</span>{" "}
        {tokenCount > 0 && <span class="quiet">{t("tokens", { n: number(tokenCount) })}</span>}
        {model.is_connected && <Chip>{t("connected")}</Chip>}
      </summary>
      <Table
        caption={model.plural}
        rows={fields}
        keyOf={(field) => field.name}
        columns={[
          { name: "field", label: t("field"), cell: (field) => field.label },
          { name: "agents", label: t("agents"), cell: (field) => (field.is_personal ? <span class="chip masked">{t("token", { label: field.token_label ?? "" })}</span> : t("clear")) },
          { name: "name", label: t("name"), cell: (field) => <code>{field.name}</code> },
        ]}
      />
    </details>
  );
}
