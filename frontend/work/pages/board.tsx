// The records of a model by the value of a select field; moving one changes that field, by its workflow where it has one.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { LinkButton } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { setQuery, go, query } from "../../shared/router";
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { BoardCard } from "../board/board_card";
import { Lane } from "../board/lane";
import { actionsOf, addressOf, workflowField, may, modelOf, titleOf } from "../models";
import { save } from "../record/save";
import { translator } from "../../shared/i18n";

const t = translator("board");

const SHOWN = 20;

export function Board({ meta, name }: { meta: Meta; name: string }) {
  const model = modelOf(meta, name);
  const fields = model?.fields.filter((each) => each.kind === "select" && !each.masked) ?? [];
  const chosen = fields.find((each) => each.name === query.value.get("by"));
  const field = chosen ?? (model && workflowField(model)) ?? fields[0];
  return model && field && may(model, "search") ? <Lanes {...{ meta, model, field, fields }} /> : <NotFound />;
}

interface Props {
  meta: Meta;
  model: Model;
  field: Field;
  fields: readonly Field[];
}

function Lanes({ meta, model, field, fields }: Props) {
  const [round, setRound] = useState(0);
  const options = field.options ?? [];
  const found = useRequest(
    (signal) =>
      Promise.all(
        options.map(async (state) => {
          const filter = [{ field: field.name, op: "eq", value: state }];
          return (await run<{ rows: Row[]; total: number }>(model.name, "search", { filter, limit: SHOWN }, signal)).value;
        }),
      ),
    [model.name, field.name, round],
    { keepsPrevious: true },
  );
  const isGoverned = workflowField(model)?.name === field.name;
  const states = (row: Row): string[] => {
    const now = row[field.name];
    if (isGoverned) {
      return [...new Set(actionsOf(model, row).flatMap((each) => (each.to && each.to !== now ? [each.to] : [])))];
    }
    return may(model, "update") && !field.readonly ? options.filter((each) => each !== now) : [];
  };
  const move = async (row: Row, state: string) => {
    const action = isGoverned ? actionsOf(model, row).find((each) => each.to === state) : undefined;
    if (action?.inputs.some((each) => row[each] === null)) {
      // Its inputs are asked for where the record is.
      go(addressOf(model.name, row.id));
      return;
    }
    const command = action ? action.id.slice(model.name.length + 1) : "update";
    const done = await save(model, row, action ? {} : { [field.name]: state }, command);
    if (done.state === "refused") {
      showToast(done.problem.message);
    } else if (done.state === "saved") {
      showToast(t("moved", { name: titleOf(model, row), state }));
    }
    setRound((last) => last + 1);
  };
  return (
    <div class="stack">
      <Heading title={t("board", { model: model.plural })}>
        <LinkButton href={`/models/${model.name}`}>{t("list")}</LinkButton>
      </Heading>
      {fields.length > 1 && (
        <SelectField
          name="by"
          label={t("by")}
          value={field.name}
          onChange={(next) => setQuery({ by: next })}
          options={fields.map((each) => [each.name, each.label])}
        />
      )}
      <RequestResult of={found}>
        {(lanes) => {
          const rows = lanes.flatMap((each) => each.rows);
          const dropped = (id: string, state: string) => {
            const row = rows.find((each) => each.id === id);
            if (row && states(row).includes(state)) {
              void move(row, state);
            }
          };
          return (
            <div class="board" tabIndex={0} role="region" aria-label={t("board", { model: model.plural })}>
              {options.map((state, place) => (
                <Lane
                  key={state}
                  state={state}
                  total={lanes[place]?.total ?? 0}
                  isWhole={(lanes[place]?.total ?? 0) <= SHOWN}
                  address={`/models/${model.name}?filter=${encodeURIComponent(JSON.stringify([{ field: field.name, op: "eq", value: state }]))}`}
                  onDrop={(id) => dropped(id, state)}
                >
                  {lanes[place]?.rows.map((row) => (
                    <BoardCard key={row.id} {...{ meta, model, row }} states={states(row)} onMove={(next) => void move(row, next)} />
                  ))}
                </Lane>
              ))}
            </div>
          );
        }}
      </RequestResult>
    </div>
  );
}
