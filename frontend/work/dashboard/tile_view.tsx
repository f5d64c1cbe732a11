// Shows a tile with the component for its kind, or a message if this person may not see the records.
import { RequestResult } from "../../shared/components/states";
import { translator } from "../../shared/i18n";
import { useRequest } from "../../shared/request";
import type { Measure, Meta, Model } from "../api";
import { ValueCounts } from "../board/value_counts";
import { fieldOf, mayRun, modelOf } from "../models";
import type { Condition } from "../values/operators";
import { Widget } from "../widgets/widget";
import type { Period } from "./periods";
import { loadSeries, type Series } from "./series";
import { countedFields, measureOf, ownFilterOf, type Tile } from "./tile";
import { Kpi, LargestRecords, OverTime, StackedBars, States, type TileProps } from "./tiles";

const t = translator("dashboard");

interface Props {
  meta: Meta;
  tile: Tile;
  period: Period;
  /** The condition that the choice of an owner adds for the records of a model. */
  filterOf: (model: Model) => Condition[];
}

export function TileView({ meta, tile, period, filterOf }: Props) {
  const model = modelOf(meta, tile.model ?? "");
  if (tile.kind === "text") {
    return (
      <Widget title={tile.title || t("kind.text")}>
        <p class="tile-text">{tile.text}</p>
      </Widget>
    );
  }
  const content = model && renderTile({ meta, model, period, filter: [...ownFilterOf(tile, measureOf(meta, tile)), ...filterOf(model)], title: tile.title || undefined }, tile);
  return (
    content ?? (
      <Widget title={tile.title || t(`kind.${tile.kind}`)}>
        <p class="widget-empty">{t("gone")}</p>
      </Widget>
    )
  );
}

function renderTile(props: TileProps, tile: Tile) {
  const { meta, model } = props;
  const groupField = tile.by ? fieldOf(model, tile.by) : undefined;
  switch (tile.kind) {
    case "bar":
      return groupField && !groupField.masked && mayRun(model, "count_by") ? <States {...props} state={groupField} /> : null;
    case "list":
      return mayRun(model, "list") ? <LargestRecords {...props} /> : null;
    case "pivot":
      return mayRun(model, "count_by") ? <ValueCounts {...{ meta, model }} fields={countedFields(model)} start={groupField} /> : null;
    case "bars": {
      const measure = measureOf(meta, tile);
      return measure && groupField && !groupField.masked && mayRun(model, "series") ? <StackedBars {...props} {...{ measure, by: groupField }} /> : null;
    }
    default: {
      const measure = measureOf(meta, tile);
      return measure ? <MeasureTile {...props} {...{ measure }} isFigure={tile.kind === "kpi"} /> : null;
    }
  }
}

function MeasureTile({ measure, isFigure, ...props }: TileProps & { measure: Measure; isFigure: boolean }) {
  const { model, period, filter } = props;
  const seriesRequest = useRequest((signal) => loadSeries({ model, measure, period, filter }, signal), [model.name, measure.fn, measure.field, measure.date, JSON.stringify(measure.filter), period.from, period.to, JSON.stringify(filter)], { keepsPrevious: true });
  return <RequestResult request={seriesRequest}>{(series: Series) => (isFigure ? <Kpi {...props} {...{ measure, series }} /> : <OverTime {...props} {...{ measure, series }} />)}</RequestResult>;
}
