// The words of the board and of the figures.
import { words } from "../../shared/words";

const en = {
  across: "And apart by",
  "across.none": "– not –",
  pivot: "{model} by {field} and {by}",
  sum: "Sum",
  board: "Board: {model}",
  list: "As a list",
  by: "Columns by",
  move: "Move to…",
  "move.of": "Move {name} to",
  moved: "{name} is now “{state}”.",
  count: "{n} in all",
  more: "Show all",
  empty: "None",
  dashboard: "Dashboard",
  figures: "{model} by {field}",
  value: "Value",
  number: "Number",
  table: "As a table",
  chart: "As bars",
  nothing: "empty",
  none: "There is nothing to count here",
  field: "Count by",
};

const de: Record<keyof typeof en, string> = {
  across: "Und getrennt nach",
  "across.none": "– nicht –",
  pivot: "{model} nach {field} und {by}",
  sum: "Summe",
  board: "Tafel: {model}",
  list: "Als Liste",
  by: "Spalten nach",
  move: "Verschieben nach…",
  "move.of": "{name} verschieben nach",
  moved: "{name} ist jetzt „{state}“.",
  count: "{n} insgesamt",
  more: "Alle zeigen",
  empty: "Keine",
  dashboard: "Übersicht",
  figures: "{model} nach {field}",
  value: "Wert",
  number: "Anzahl",
  table: "Als Tabelle",
  chart: "Als Balken",
  nothing: "leer",
  none: "Hier gibt es nichts zu zählen",
  field: "Zählen nach",
};

export const say = words(en, de);
