// What agents see of the fields of each model: the value, or a placeholder token. Administrators decide on the fields of
// connected tables.
import { useEffect, useRef, useState } from "preact/hooks";
import { Chip } from "../../shared/components/chip";
import { TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { Empty, FailureNotice, Loading } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { number, plural, translator } from "../../shared/i18n";
import { useRequest } from "../../shared/request";
import { query, setQuery } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { showToast } from "../../shared/toast";
import type { Field, Meta, Model } from "../api";
import { ConnectedFields, focusNextUndecided } from "../data_map/connected_fields";
import { DecideDialog } from "../data_map/decide_dialog";
import { type Choice, type DataMap as Decisions, type Decision, decide, decidesOnFields, isPending, loadDataMap, type MappedField, type MappedModel } from "../data_map/decisions";
import { businessModels, fieldOf, modelOf } from "../models";
import { managesPeople } from "../users/people";
import "./data_map.css";

const t = translator("data");

const SHOWN = ["all", "undecided", "tokens", "clear"] as const;
type Shown = (typeof SHOWN)[number];
/** The maximum number of fields with which all models are shown opened. */
const MAX_FIELDS_OPEN = 200;
const NO_DECISIONS: Decisions = { models: [], undecided: 0, decided: 0, is_restart_needed: false };

export function DataMap({ meta }: { meta: Meta }) {
  return managesPeople(meta) ? <Content meta={meta} /> : <NotFound />;
}

function Content({ meta }: { meta: Meta }) {
  const request = useRequest((signal) => (decidesOnFields(meta) ? loadDataMap(signal) : Promise.resolve(NO_DECISIONS)), [], { keepsPrevious: true });
  // The map after the decisions on this page. A new request replaces it.
  const [decided, setDecided] = useState<{ from: Decisions; map: Decisions } | null>(null);
  const loaded = request.state === "loaded" ? request.value : null;
  const map = loaded && decided?.from === loaded ? decided.map : loaded;
  const chosenFilter = SHOWN.find((name) => name === query.value.get("show")) ?? "all";
  const filters = SHOWN.filter((name) => name !== "undecided" || (map?.models.length ?? 0) > 0);
  return (
    <div class="data-map stack">
      <Heading title={t("title")}>
        <div class="segments" role="group" aria-label={t("show")}>
          {filters.map((name) => (
            <button key={name} type="button" aria-pressed={name === chosenFilter} onClick={() => setQuery({ show: name === "all" ? "" : name })}>
              {t(`show.${name}`)}
            </button>
          ))}
        </div>
      </Heading>
      <p class="quiet">{t("lead")}</p>
      {map && map.undecided + map.decided > 0 && <Progress map={map} />}
      {map?.is_restart_needed && (
        <p class="notice" role="status">
          {t("restart")}
        </p>
      )}
      <TextField name="find" type="search" label={t("find")} value={query.value.get("find") ?? ""} onInput={(event) => setQuery({ find: event.currentTarget.value })} />
      {request.state === "failed" && <FailureNotice problem={request.problem} onRetry={request.reload} />}
      {request.state === "loading" ? (
        <Loading />
      ) : (
        <Models
          {...{ meta, chosenFilter }}
          map={map ?? NO_DECISIONS}
          onChanged={(changed) => loaded && setDecided({ from: loaded, map: changed })}
          onReload={request.reload}
        />
      )}
    </div>
  );
}

function Progress({ map }: { map: Decisions }) {
  const all = map.undecided + map.decided;
  const text = map.undecided === 0 ? t("progress.done") : t("progress", { decided: number(map.decided), all: number(all) });
  return (
    <div class="decided-share">
      <progress value={map.decided} max={all} aria-label={t("progress.label")} />
      <span role="status">{text}</span>
    </div>
  );
}

interface ModelsProps {
  meta: Meta;
  map: Decisions;
  chosenFilter: Shown;
  onChanged: (map: Decisions) => void;
  onReload: () => void;
}

interface Question {
  model: MappedModel;
  field: MappedField;
  choice: Choice;
}

function Models({ meta, map, chosenFilter, onChanged, onReload }: ModelsProps) {
  const [question, setQuestion] = useState<Question | null>(null);
  const [lastReason, setLastReason] = useState("");
  const decidedGroup = useRef<Element | null>(null);
  const search = (query.value.get("find") ?? "").toLowerCase();
  const matches = (texts: readonly string[]) => texts.some((text) => text.toLowerCase().includes(search));
  const connected = new Set(map.models.map((model) => model.model));
  const ownModels = businessModels(meta)
    .filter((model) => !connected.has(model.name))
    .map((model) => ({ model, fields: model.fields.filter((field) => fitsField(field, chosenFilter) && matches([model.plural, model.name, field.label, field.name])) }))
    .filter(({ fields }) => fields.length > 0);
  const labelOf = (model: MappedModel, field: MappedField) => fieldOf(modelOf(meta, model.model), field.name)?.label ?? field.name;
  const mappedModels = map.models
    .map((model) => ({ model, plural: modelOf(meta, model.model)?.plural ?? model.model }))
    .map(({ model, plural }) => ({ model, plural, fields: model.fields.filter((field) => fitsMapped(field, chosenFilter) && matches([plural, model.model, labelOf(model, field), field.name])) }))
    .filter(({ fields }) => fields.length > 0);
  const fieldCount = [...ownModels, ...mappedModels].reduce((sum, { fields }) => sum + fields.length, 0);
  const isOpen = fieldCount <= MAX_FIELDS_OPEN || chosenFilter === "undecided";
  useEffect(() => {
    const next = registerShortcut({ key: "j", does: t("key.next"), run: () => focusNextUndecided(1) });
    const previous = registerShortcut({ key: "k", does: t("key.previous"), run: () => focusNextUndecided(-1) });
    return () => (next(), previous());
  }, []);
  const save = async (decision: Decision) => {
    if (question) {
      const changed = await decide(map, question.field, decision);
      const row = document.querySelector(`[data-undecided="${CSS.escape(question.field.field)}"]`);
      decidedGroup.current = row?.closest("tr")?.previousElementSibling ?? row?.closest("details") ?? null;
      setLastReason(decision.reason);
      setQuestion(null);
      onChanged(changed);
      const field = changed.models.flatMap((model) => model.fields).find((each) => each.field === question.field.field);
      const file = question.model.file.split("/").at(-1) ?? question.model.file;
      showToast(t(field && isPending(field) ? "decide.saved" : "decide.saved.now", { file }));
    }
  };
  useEffect(() => {
    // After a decision, go on with the next field.
    if (decidedGroup.current) {
      const from = decidedGroup.current;
      decidedGroup.current = null;
      setTimeout(() => focusNextUndecided(1, from));
    }
  }, [map]);
  if (fieldCount === 0) {
    const isDone = chosenFilter === "undecided" && search === "";
    return (
      <Empty title={t(isDone ? "none.undecided" : "none")} icon={isDone ? "circle-check" : "eye"}>
        <p>{t(isDone ? "none.undecided.text" : "none.text")}</p>
      </Empty>
    );
  }
  return (
    <>
      {mappedModels.map(({ model, plural, fields }) => (
        <details key={model.model} open={isOpen}>
          <MappedSummary {...{ model, plural, fields }} />
          <ConnectedFields caption={plural} fields={fields} labelOf={(field) => labelOf(model, field)} onChoose={(field, choice) => setQuestion({ model, field, choice })} />
        </details>
      ))}
      {ownModels.map(({ model, fields }) => (
        <ModelFields key={model.name} {...{ model, fields, isOpen }} />
      ))}
      {question && (
        <DecideDialog
          key={question.field.field}
          field={question.field}
          name={`${modelOf(meta, question.model.model)?.label ?? question.model.model} · ${labelOf(question.model, question.field)}`}
          choice={question.choice}
          reason={lastReason}
          onDecide={save}
          onReload={() => (setQuestion(null), onReload())}
          onClose={() => setQuestion(null)}
        />
      )}
    </>
  );
}

function fitsField(field: Field, chosenFilter: Shown): boolean {
  return chosenFilter === "all" || (chosenFilter !== "undecided" && Boolean(field.is_personal) === (chosenFilter === "tokens"));
}

function fitsMapped(field: MappedField, chosenFilter: Shown): boolean {
  const seen = { all: true, undecided: field.state === "undecided", tokens: field.agents_see.see === "tokens", clear: field.agents_see.see === "values" };
  return seen[chosenFilter];
}

function MappedSummary({ model, plural: name, fields }: { model: MappedModel; plural: string; fields: readonly MappedField[] }) {
  const undecided = fields.filter((field) => field.state === "undecided").length;
  return (
    <summary>
      <b>{name}</b>{" "}
      <span class="quiet">{plural(fields.length, t("fields.one"), t("fields"))}</span>{" "}
      {undecided > 0 && <Chip tone="warn">{t("undecided.count", { n: number(undecided) })}</Chip>}
      <Chip>{t("connected")}</Chip>
      {model.is_suspended && <Chip tone="bad">{t("suspended")}</Chip>}
      <code title={model.file}>{model.file.split("/").at(-1)}</code>
    </summary>
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
