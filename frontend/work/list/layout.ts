// The layout of a list: widths, density and frozen column. It is part of the address, so views include it.
import { setQuery, query } from "../../shared/router";
import type { Field, Model } from "../api";
import { defaultDensity } from "./density";

export const MIN_WIDTH_REM = 4;
export const MAX_WIDTH_REM = 60;
const WIDTH_BY_KIND_REM: Record<string, number> = { bool: 5.5, number: 6, money: 8.5, date: 8, select: 7.25 };
const DEFAULT_WIDTH_REM = 10.5;
const PERSON_WIDTH_REM = 8.25;
const TITLE_EXTRA_REM = 8;

export interface Layout {
  /** Widths in rem by field. Columns without a width share the rest. */
  widths: ReadonlyMap<string, number>;
  /** Whether rows are higher than usual. */
  isRelaxed: boolean;
  /** Whether the first column stays visible while scrolling. */
  isFrozen: boolean;
}

export function currentLayout(): Layout {
  const widths = (query.value.get("widths") ?? "").split(",").flatMap((widthText): [string, number][] => {
    const [name = "", text = ""] = widthText.split(":");
    const width = Number(text);
    return name && width >= MIN_WIDTH_REM && width <= MAX_WIDTH_REM ? [[name, width]] : [];
  });
  return {
    widths: new Map(widths),
    isRelaxed: (query.value.get("density") || defaultDensity.value) === "relaxed",
    isFrozen: query.value.get("freeze") !== "0",
  };
}

/** The width or minimum width of a column in rem. */
export function width_rem(model: Model, field: Field, { widths }: Layout): number {
  const defaultWidth = (!field.masked && (field.ref === "user" ? PERSON_WIDTH_REM : WIDTH_BY_KIND_REM[field.kind])) || DEFAULT_WIDTH_REM;
  return widths.get(field.name) ?? defaultWidth + (field.name === model.shown_as ? TITLE_EXTRA_REM : 0);
}

/** The CSS grid columns, and the minimum width of a row. */
export function gridTemplate(model: Model, columns: readonly Field[], layout: Layout): { columns: string; minWidth: string } {
  const widths = columns.map((column) => ({ rem: width_rem(model, column, layout), isSet: layout.widths.has(column.name) }));
  const rem = widths.reduce((sum, width) => sum + width.rem, 0);
  return {
    columns: widths.map((width) => (width.isSet ? `${width.rem}rem` : `minmax(${width.rem}rem, ${width.rem}fr)`)).join(" "),
    minWidth: `${rem}rem`,
  };
}

/** Set the width of a column; null removes it. */
export function setColumnWidth({ widths }: Layout, name: string, rem: number | null): void {
  const newWidths = new Map(widths);
  if (rem === null) {
    newWidths.delete(name);
  } else {
    newWidths.set(name, Math.round(Math.max(MIN_WIDTH_REM, Math.min(MAX_WIDTH_REM, rem)) * 4) / 4);
  }
  setQuery({ widths: [...newWidths].map(([name, width]) => `${name}:${width}`).join(",") });
}

export function setRelaxed(isRelaxed: boolean): void {
  const density = isRelaxed ? "relaxed" : "compact";
  setQuery({ density: density === defaultDensity.value ? "" : density });
}

export function setFrozen(isFrozen: boolean): void {
  setQuery({ freeze: isFrozen ? "" : "0" });
}
