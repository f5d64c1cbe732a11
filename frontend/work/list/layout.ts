// How a list looks, kept in its address like what it shows, so that a view keeps it too: widths, density, what is frozen.
import { setQuery, query } from "../../shared/router";
import type { Field, Model } from "../api";

export const LEAST_REM = 4;
export const MOST_REM = 60;
const NARROW_REM: Record<string, number> = { bool: 5.5, number: 6, money: 8.5, date: 8, select: 7.25 };
const USUAL_REM = 10.5;
const PERSON_REM = 8.25;
const NAMING_REM = 8;

export interface Layout {
  /** In rem, by field; columns without one share what is left. */
  widths: ReadonlyMap<string, number>;
  /** Rows are higher than usual. */
  isRelaxed: boolean;
  /** Whether the first column stays in sight. */
  isFrozen: boolean;
}

export function currentLayout(): Layout {
  const said = (query.value.get("widths") ?? "").split(",").flatMap((each): [string, number][] => {
    const [name = "", text = ""] = each.split(":");
    const width = Number(text);
    return name && width >= LEAST_REM && width <= MOST_REM ? [[name, width]] : [];
  });
  return {
    widths: new Map(said),
    isRelaxed: query.value.get("density") === "relaxed",
    isFrozen: query.value.get("freeze") !== "0",
  };
}

/** The width a column has, or at least has, in rem. */
export function width_rem(model: Model, field: Field, { widths }: Layout): number {
  const usual = (!field.masked && (field.ref === "user" ? PERSON_REM : NARROW_REM[field.kind])) || USUAL_REM;
  return widths.get(field.name) ?? usual + (field.name === model.shown_as ? NAMING_REM : 0);
}

/** The columns as CSS says them, and the least width of a row. */
export function gridTemplate(model: Model, columns: readonly Field[], now: Layout): { columns: string; least: string } {
  const widths = columns.map((each) => ({ rem: width_rem(model, each, now), isSet: now.widths.has(each.name) }));
  const rem = widths.reduce((sum, each) => sum + each.rem, 0);
  return {
    columns: widths.map((each) => (each.isSet ? `${each.rem}rem` : `minmax(${each.rem}rem, ${each.rem}fr)`)).join(" "),
    least: `${rem}rem`,
  };
}

/** Give a column this width; null gives it back its share. */
export function setColumnWidth({ widths }: Layout, name: string, rem: number | null): void {
  const next = new Map(widths);
  if (rem === null) {
    next.delete(name);
  } else {
    next.set(name, Math.round(Math.max(LEAST_REM, Math.min(MOST_REM, rem)) * 4) / 4);
  }
  setQuery({ widths: [...next].map(([each, width]) => `${each}:${width}`).join(",") });
}

export function setRelaxed(isRelaxed: boolean): void {
  setQuery({ density: isRelaxed ? "relaxed" : "" });
}

export function setFrozen(isFrozen: boolean): void {
  setQuery({ freeze: isFrozen ? "" : "0" });
}
