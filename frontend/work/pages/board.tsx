// The board: records by the value of a select field. Moving a card changes the field, with the workflow's action if it has one.
import { useEffect, useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { LinkButton } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { setQuery, go, query } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { BoardCard } from "../board/board_card";
import { Lane } from "../board/lane";
import { actionsOf, addressOf, workflowField, mayRun, modelOf, nounOf } from "../models";
import { ViewSwitch } from "../list/view_switch";
import { formatWholeAmount } from "../values/money";
import { optionLabel } from "../values/options";
import { save } from "../record/save";
import { FavouriteButton } from "../shell/favourite_button";
import { translator } from "../../shared/i18n";
import "../board/board.css";

const t = translator("board");

const MAX_CARDS = 20;

export function Board({ meta, name }: { meta: Meta; name: string }) {
  const model = modelOf(meta, name);
  const fields = model?.fields.filter((field) => field.kind === "select" && !field.masked) ?? [];
  const chosenField = fields.find((field) => field.name === query.value.get("by"));
  const field = chosenField ?? (model && workflowField(model)) ?? fields[0];
  return model && field && mayRun(model, "search") ? <Lanes {...{ meta, model, field, fields }} /> : <NotFound />;
}

interface Props {
  meta: Meta;
  model: Model;
  field: Field;
  fields: readonly Field[];
}

interface LaneRows {
  rows: Row[];
  total: number;
  sums?: Record<string, { sum: number | null; count: number }>;
}

function Lanes({ meta, model, field, fields }: Props) {
  const [round, setRound] = useState(0);
  const options = field.options ?? [];
  const amount = model.fields.find((field) => field.kind === "money" && !field.masked);
  const columnsRequest = useRequest(
    (signal) =>
      Promise.all(
        options.map(async (state) => {
          const filter = [{ field: field.name, op: "eq", value: state }];
          const searchInput = { filter, limit: MAX_CARDS, ...(amount && model.command_details ? { sums: [amount.name] } : {}) };
          return (await run<LaneRows>(model.name, "search", searchInput, signal)).value;
        }),
      ),
    [model.name, field.name, round],
    { keepsPrevious: true },
  );
  const isGoverned = workflowField(model)?.name === field.name;
  const states = (row: Row): string[] => {
    const now = row[field.name];
    if (isGoverned) {
      return [...new Set(actionsOf(model, row).flatMap((action) => (action.to && action.to !== now ? [action.to] : [])))];
    }
    return mayRun(model, "update") && !field.readonly ? options.filter((option) => option !== now) : [];
  };
  const move = async (row: Row, state: string) => {
    const action = isGoverned ? actionsOf(model, row).find((action) => action.to === state) : undefined;
    if (action?.inputs.some((input) => row[input] === null)) {
      // The action needs inputs, which the record's page asks for.
      go(addressOf(model.name, row.id));
      return;
    }
    const command = action ? action.id.slice(model.name.length + 1) : "update";
    const outcome = await save(model, row, action ? {} : { [field.name]: state }, command);
    if (outcome.state === "refused") {
      showToast(outcome.problem.message);
    } else if (outcome.state === "saved") {
      showToast(t("moved", { state: optionLabel(field, state) }));
    }
    setRound((round) => round + 1);
  };
  const [dragged, setDragged] = useState<readonly string[] | null>(null);
  useEffect(() => registerShortcut({ key: "M", does: t("move") }), []);
  return (
    <div class="page">
      <Heading title={t("board", { model: model.plural })}>
        <div class="head-end">
          {fields.length > 1 && (
            <label class="row small">
              <span class="head-words quiet">{t("by")}</span>
              <select class="input" id="by" aria-label={t("by")} value={field.name} onChange={(event) => setQuery({ by: event.currentTarget.value })}>
                {fields.map((stateField) => (
                  <option key={stateField.name} value={stateField.name} selected={stateField === field}>
                    {stateField.label}
                  </option>
                ))}
              </select>
            </label>
          )}
          <FavouriteButton path={`/models/${model.name}/board`} name={t("board", { model: model.plural })} />
          <ViewSwitch model={model} current="board" />
          {mayRun(model, "create") && (
            <LinkButton tight variant="strong" href={`/models/${model.name}/new`}>
              <Icon name="plus" size="s" />
              {t("new", { model: nounOf(model.label) })}
            </LinkButton>
          )}
        </div>
      </Heading>
      <RequestResult request={columnsRequest}>
        {(lanes) => {
          const rows = lanes.flatMap((lane) => lane.rows);
          const handleDrop = (id: string, state: string) => {
            const row = rows.find((row) => row.id === id);
            if (row && states(row).includes(state)) {
              void move(row, state);
            }
          };
          return (
            <div class="board" tabIndex={0} role="region" aria-label={t("board", { model: model.plural })}>
              {options.map((state, index) => {
                const lane = lanes[index];
                const sum = amount && lane?.sums?.[amount.name];
                return (
                  <Lane
                    key={state}
                    {...{ field, state }}
                    total={lane?.total ?? 0}
                    sum={sum && sum.sum !== null && sum.count > 0 ? formatWholeAmount(sum.sum, amount.currency) : null}
                    isWhole={(lane?.total ?? 0) <= MAX_CARDS}
                    isClosed={dragged !== null && !dragged.includes(state)}
                    address={`/models/${model.name}?filter=${encodeURIComponent(JSON.stringify([{ field: field.name, op: "eq", value: state }]))}`}
                    onDrop={(id) => handleDrop(id, state)}
                  >
                    {lane?.rows.map((row) => (
                      <BoardCard key={row.id} {...{ meta, model, field, row }} states={states(row)} onMove={(newState) => void move(row, newState)} onDrag={setDragged} />
                    ))}
                  </Lane>
                );
              })}
            </div>
          );
        }}
      </RequestResult>
    </div>
  );
}
