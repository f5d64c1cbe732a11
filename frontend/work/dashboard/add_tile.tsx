// The dialog that adds a tile: its kind, the records it shows, and what is counted or added up.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { SelectField, TextField } from "../../shared/components/field";
import { translator } from "../../shared/i18n";
import type { Field, Measure, Meta, Model } from "../api";
import { businessModels, mayRun } from "../models";
import { measuresOf } from "./series";
import { countedFields, KINDS, measureName, measureTile, partFields, type StoredTile, type TileKind } from "./tile";

const t = translator("dashboard");

/** The measures and fields that a tile of this kind can show, for a model. */
function measuresFor(kind: TileKind, model: Model): Measure[] {
  return measuresOf(model).filter((measure) => kind !== "bars" || measure.fn === "count");
}

function fieldsFor(kind: TileKind, model: Model): Field[] {
  return kind === "bars" ? partFields(model) : kind === "bar" ? countedFields(model).filter((countedField) => countedField.kind === "select") : [];
}

function isPossible(kind: TileKind, model: Model): boolean {
  switch (kind) {
    case "kpi":
    case "line":
      return measuresFor(kind, model).length > 0;
    case "bars":
      return measuresFor(kind, model).length > 0 && fieldsFor(kind, model).length > 0;
    case "bar":
      return mayRun(model, "count_by") && fieldsFor(kind, model).length > 0;
    case "pivot":
      return mayRun(model, "count_by") && countedFields(model).length > 0;
    default:
      return mayRun(model, "list");
  }
}

interface Props {
  meta: Meta;
  isOpen: boolean;
  onAdd: (tile: StoredTile) => void;
  onClose: () => void;
}

export function AddTile({ meta, isOpen, onAdd, onClose }: Props) {
  return (
    <Dialog
      title={t("add")}
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <Button type="submit" form="add-tile" variant="strong">
          {t("add.do")}
        </Button>
      }
    >
      <Form {...{ meta, onAdd }} />
    </Dialog>
  );
}

function Form({ meta, onAdd }: Pick<Props, "meta" | "onAdd">) {
  const allModels = businessModels(meta);
  const kinds = KINDS.filter((kind) => kind === "text" || allModels.some((model) => isPossible(kind, model)));
  const [kind, setKind] = useState<TileKind>(kinds[0] ?? "text");
  const [modelName, setModelName] = useState("");
  const [measureIndex, setMeasureIndex] = useState("0");
  const [fieldName, setFieldName] = useState("");
  const [title, setTitle] = useState("");
  const [text, setText] = useState("");
  const models = allModels.filter((model) => isPossible(kind, model));
  const model = models.find((model) => model.name === modelName) ?? models[0];
  const measures = model && ["kpi", "line", "bars"].includes(kind) ? measuresFor(kind, model) : [];
  const measure = measures[Number(measureIndex)] ?? measures[0];
  const fields = model ? fieldsFor(kind, model) : [];
  const field = fields.find((field) => field.name === fieldName) ?? fields[0];
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    const tile: StoredTile = kind === "text" ? { kind, text } : model && measure ? measureTile(kind, model, measure) : { kind, model: model?.name ?? null };
    onAdd({ ...tile, ...(field && kind !== "text" ? { by: field.name } : {}), title: title.trim() });
  };
  return (
    <form id="add-tile" class="stack" onSubmit={add}>
      <SelectField name="tile-kind" label={t("kind")} value={kind} onChange={(value) => setKind(value as TileKind)} options={kinds.map((kind) => [kind, t(`kind.${kind}`)])} />
      {kind !== "text" && model && <SelectField name="tile-model" label={t("records")} value={model.name} onChange={setModelName} options={models.map((model) => [model.name, model.plural])} />}
      {measure && <SelectField name="tile-measure" label={t("measure")} value={String(measures.indexOf(measure))} onChange={setMeasureIndex} options={measures.map((measure, index) => [String(index), measureName(measure)])} />}
      {kind !== "text" && field && <SelectField name="tile-field" label={t("by")} value={field.name} onChange={setFieldName} options={fields.map((field) => [field.name, field.label])} />}
      {kind === "text" && <TextField name="tile-text" label={t("text")} value={text} maxLength={2000} required onInput={(event) => setText(event.currentTarget.value)} />}
      <TextField name="tile-title" label={t("tile.title")} help={t("tile.title.help")} value={title} maxLength={200} onInput={(event) => setTitle(event.currentTarget.value)} />
    </form>
  );
}
