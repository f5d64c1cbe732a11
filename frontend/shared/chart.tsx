// Charts drawn as SVG: lines with an area below them, bars that may be stacked, and a line without axes.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { MARKER_PX, MarkerLines, MarkerTags, type ChartMarker, type CountLabel } from "./chart_markers";
import { language, number, shortDate, translator } from "./i18n";
import "./chart.css";

const t = translator("common");

export interface ChartSeries {
  name: string;
  /** One value per day of the chart; null for a day without one. */
  values: readonly (number | null)[];
  /** The colour, 1 to 6, used in this order; 6 is for a comparison. */
  hue: number;
  isDashed?: boolean;
  hasArea?: boolean;
}

export interface ChartProps {
  /** What the chart shows, for screen readers. */
  title: string;
  /** Calendar dates, one for each value. */
  days: readonly string[];
  series: readonly ChartSeries[];
  kind: "line" | "bars";
  height?: number;
  /** Formats a value in full. */
  format?: (value: number) => string;
  /** Formats a value beside the axis. */
  formatTick?: (value: number) => string;
  /** The heading of a day in the tooltip. */
  dayLabel?: (day: string) => string;
  /** Events on some of the days. */
  markers?: readonly ChartMarker[];
  /** Returns a name for several markers at one position. */
  countLabel?: CountLabel;
  /** Called when a day is pressed. */
  onOpen?: ((index: number) => void) | undefined;
}

const LEFT = 44;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 22;
const LABEL_PX = 62;
const MAX_LABELS = 9;
const TOOLTIP_PX = 176;
const GAPS = 4;
const MAX_BAR_PX = 34;

/** A short form of a number beside an axis: 1.2K. */
export function compact(value: number): string {
  return new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

/** At most five round numbers, from 0 (or below it for negative values) to the largest value. */
export function ticks(values: readonly number[]): number[] {
  const largest = Math.max(0, ...values);
  const smallest = Math.min(0, ...values);
  const raw = (largest - smallest || 1) / GAPS;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(([1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * 0.999) ?? 10) * power, Number.EPSILON);
  const isWhole = values.every(Number.isInteger);
  const size = isWhole ? Math.max(1, Math.ceil(step)) : step;
  const firstTick = Math.floor(smallest / size);
  const lastTick = Math.max(firstTick + 1, Math.ceil(largest / size));
  return Array.from({ length: lastTick - firstTick + 1 }, (_, index) => (firstTick + index) * size);
}

function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) {
      return undefined;
    }
    const observer = new ResizeObserver(() => setWidth(Math.round(element.clientWidth)));
    setWidth(Math.round(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { box, width };
}

/** A chart over days. The pointer or the arrow keys choose a day, whose values are shown and read aloud. */
export function Chart({ title, days, series, kind, height = 220, format = number, formatTick = compact, dayLabel = shortDate, markers = [], countLabel = number, onOpen }: ChartProps) {
  const { box, width } = useWidth();
  const [hoveredIndex, setHoveredIndex] = useState<number | null>(null);
  const stacked = days.map((_, index) => series.reduce((sum, oneSeries) => sum + (oneSeries.values[index] ?? 0), 0));
  const values = series.flatMap((oneSeries) => oneSeries.values.filter((value): value is number => value !== null));
  const marks = ticks(kind === "bars" ? [...stacked, ...values] : values);
  const [lowest = 0, highest = 1] = [marks[0], marks.at(-1)];
  const inner = Math.max(1, width - LEFT - RIGHT);
  const top = TOP + (markers.length && MARKER_PX);
  const band = inner / Math.max(1, days.length);
  const x = (index: number) => LEFT + (kind === "bars" || days.length === 1 ? band * (index + 0.5) : (inner * index) / (days.length - 1));
  const y = (value: number) => top + (height - top - BOTTOM) * (1 - (value - lowest) / (highest - lowest || 1));
  const labelStep = Math.max(1, Math.ceil(Math.max(LABEL_PX, inner / MAX_LABELS) / (inner / Math.max(1, days.length))));
  const lastIndex = days.length - 1;
  const point = (event: PointerEvent) => {
    const left_px = (event.currentTarget as Element).getBoundingClientRect().left;
    const index = kind === "bars" ? Math.floor((event.clientX - left_px - LEFT) / band) : Math.round(((event.clientX - left_px - LEFT) / inner) * lastIndex);
    setHoveredIndex(Math.min(lastIndex, Math.max(0, index)));
  };
  const handleKey = (event: KeyboardEvent) => {
    const nextIndex = { ArrowRight: (hoveredIndex ?? -1) + 1, ArrowLeft: (hoveredIndex ?? days.length) - 1, Home: 0, End: lastIndex }[event.key];
    if (nextIndex !== undefined) {
      event.preventDefault();
      setHoveredIndex(Math.min(lastIndex, Math.max(0, nextIndex)));
    } else if (event.key === "Escape") {
      setHoveredIndex(null);
    } else if (event.key === "Enter" && hoveredIndex !== null) {
      onOpen?.(hoveredIndex);
    }
  };
  const pointLabel = (index: number) =>
    [dayLabel(days[index] ?? ""), ...series.map((line) => `${line.name}: ${formatted(line.values[index])}`)].join(", ");
  const formatted = (value: number | null | undefined) => (value === null || value === undefined ? "–" : format(value));
  return (
    <div class="chart" ref={box}>
      {width > 0 && (
        <svg
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={t("chart", { title })}
          tabIndex={0}
          class={onOpen && hoveredIndex !== null ? "opens" : undefined}
          onPointerMove={point}
          onPointerLeave={() => setHoveredIndex(null)}
          onBlur={() => setHoveredIndex(null)}
          onKeyDown={handleKey}
          onClick={() => hoveredIndex !== null && onOpen?.(hoveredIndex)}
        >
          {marks.map((mark) => (
            <g key={mark}>
              <line class={mark === 0 ? "base" : "grid"} x1={LEFT} x2={width - RIGHT} y1={y(mark)} y2={y(mark)} />
              <text x={LEFT - 8} y={y(mark) + 4} text-anchor="end">
                {formatTick(mark)}
              </text>
            </g>
          ))}
          {days.map((day, index) =>
            index % labelStep === 0 ? (
              <text key={day} x={x(index)} y={height - 6} text-anchor={anchor(index, kind, lastIndex)}>
                {shortDate(day)}
              </text>
            ) : null,
          )}
          <MarkerLines {...{ markers, x, countLabel, top }} bottom={height - BOTTOM} />
          {hoveredIndex !== null &&
            (kind === "bars" ? (
              <rect class="shade" x={LEFT + band * hoveredIndex} y={top} width={band} height={height - top - BOTTOM} />
            ) : (
              <line class="at" x1={x(hoveredIndex)} x2={x(hoveredIndex)} y1={top} y2={height - BOTTOM} />
            ))}
          {kind === "bars" ? <Bars {...{ days, series, x, y }} size={Math.min(MAX_BAR_PX, band * 0.68)} /> : series.map((oneSeries) => <Line key={oneSeries.name} {...{ x, y }} series={oneSeries} />)}
          {hoveredIndex !== null && kind === "line" && series.map((oneSeries) => dotAt(oneSeries, hoveredIndex, x, y))}
          {hoveredIndex !== null && (
            <Tooltip x={tooltipX(x(hoveredIndex), width)} y={top} heading={dayLabel(days[hoveredIndex] ?? "")} rows={series.map((oneSeries) => ({ name: oneSeries.name, hue: oneSeries.hue, value: formatted(oneSeries.values[hoveredIndex]) }))} />
          )}
        </svg>
      )}
      {width > 0 && markers.length > 0 && <MarkerTags {...{ markers, x, countLabel, width }} />}
      <p class="hidden-text" role="status">
        {hoveredIndex !== null && pointLabel(hoveredIndex)}
      </p>
    </div>
  );
}

function anchor(index: number, kind: ChartProps["kind"], lastIndex: number): "start" | "middle" | "end" {
  return kind === "bars" ? "middle" : index === 0 ? "start" : index === lastIndex ? "end" : "middle";
}

function tooltipX(x: number, width: number): number {
  const right = x + 12;
  return right + TOOLTIP_PX > width ? Math.max(0, x - TOOLTIP_PX - 12) : right;
}

interface Scale {
  x: (index: number) => number;
  y: (value: number) => number;
}

/** The points of each unbroken part of a line; a day without a value breaks it. */
function runs(values: readonly (number | null)[], { x, y }: Scale): [number, number][][] {
  const segments: [number, number][][] = [[]];
  values.forEach((value, index) => {
    if (value === null) {
      segments.push([]);
    } else {
      segments.at(-1)?.push([x(index), y(value)]);
    }
  });
  return segments.filter((segment) => segment.length > 0);
}

function pathOf(points: readonly [number, number][]): string {
  return points.map(([x, y], index) => `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

function Line({ series: { values, hue, isDashed, hasArea }, x, y }: Scale & { series: ChartSeries }) {
  return (
    <g class={`hue${hue}`}>
      {runs(values, { x, y }).map((points) => (
        <g key={points[0]?.[0]}>
          {hasArea && <path class="area" d={`${pathOf(points)}L${points.at(-1)?.[0]} ${y(0)}L${points[0]?.[0]} ${y(0)}Z`} />}
          <path class={isDashed ? "line dashed" : "line"} d={pathOf(points)} />
        </g>
      ))}
    </g>
  );
}

function dotAt({ name, values, hue, isDashed }: ChartSeries, index: number, x: Scale["x"], y: Scale["y"]) {
  const value = values[index];
  return value === null || value === undefined || isDashed ? null : <circle key={name} class={`dot hue${hue}`} cx={x(index)} cy={y(value)} r={4.5} />;
}

function Bars({ days, series, x, y, size }: Scale & { days: readonly string[]; series: readonly ChartSeries[]; size: number }) {
  return (
    <>
      {days.map((day, index) => {
        let base = 0;
        return (
          <g key={day}>
            {series.map(({ name, values, hue }) => {
              const value = values[index] ?? 0;
              const [top, bottom] = [y(base + value), y(base)];
              base += value;
              return value > 0 ? <rect key={name} class={`bar hue${hue}`} x={x(index) - size / 2} y={top} width={size} height={Math.max(1, bottom - top - 1)} rx={1.5} /> : null;
            })}
          </g>
        );
      })}
    </>
  );
}

const ROW_PX = 16;

function Tooltip({ x, y, heading, rows }: { x: number; y: number; heading: string; rows: readonly { name: string; hue: number; value: string }[] }) {
  return (
    <g class="tip" transform={`translate(${x} ${y})`} aria-hidden="true">
      <rect width={TOOLTIP_PX} height={rows.length * ROW_PX + 30} rx={6} />
      <text class="strong" x={10} y={18}>
        {heading}
      </text>
      {rows.map((row, index) => (
        <g key={row.name} class={`hue${row.hue}`} transform={`translate(10 ${index * ROW_PX + 34})`}>
          <rect class="key" y={-7} width={7} height={7} rx={1.5} />
          <text x={13}>{row.name.length > 16 ? `${row.name.slice(0, 15)}…` : row.name}</text>
          <text class="strong" x={TOOLTIP_PX - 20} text-anchor="end">
            {row.value}
          </text>
        </g>
      ))}
    </g>
  );
}

/** A small line without axes, beside a figure for the same data. */
export function Sparkline({ values, hue = 1 }: { values: readonly (number | null)[]; hue?: number }) {
  const numbers = values.map((value) => value ?? 0);
  const [lowest, highest] = [Math.min(...numbers, 0), Math.max(...numbers, 0)];
  const scale = {
    x: (index: number) => (numbers.length < 2 ? 0 : (200 * index) / (numbers.length - 1)),
    y: (value: number) => 32 - (30 * (value - lowest)) / (highest - lowest || 1),
  };
  return (
    <svg class={`spark hue${hue}`} viewBox="0 0 200 34" preserveAspectRatio="none" aria-hidden="true">
      <path class="area" d={`${pathOf(numbers.map((value, index) => [scale.x(index), scale.y(value)]))}L200 34L0 34Z`} />
      <path class="line" vector-effect="non-scaling-stroke" d={pathOf(numbers.map((value, index) => [scale.x(index), scale.y(value)]))} />
    </svg>
  );
}

/** The name of each series beside its colour. */
export function Legend({ series }: { series: readonly Pick<ChartSeries, "name" | "hue">[] }) {
  return (
    <ul class="legend">
      {series.map(({ name, hue }) => (
        <li key={name} class={`hue${hue}`}>
          <svg viewBox="0 0 8 8" aria-hidden="true">
            <rect width="8" height="8" rx="2" />
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}
