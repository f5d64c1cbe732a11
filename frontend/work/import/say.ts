// The words of the import.
import { words } from "../../shared/words";

const en = {
  title: "Import: {model}",
  lead: "A CSV file, its first row with names. All rows are taken, or none; a trial run tells you first.",
  file: "CSV file",
  map: "Which column is which field",
  column: "Column",
  sample: "First value",
  field: "Field",
  ignore: "– leave out –",
  minor: "{label}: in minor units (1234)",
  amount: "{label}: as an amount (12.34)",
  rows: "{n} rows",
  dry: "Trial run",
  run: "Import {n} rows",
  fine: "All {n} rows fit. Nothing has been written yet.",
  done: "{n} records made.",
  see: "See them",
  errors: "{n} rows do not fit; nothing was written",
  row: "Row",
  error: "What is wrong",
  "fault.amount": "“{text}” in row {row} is no amount",
  "fault.none": "Map at least one column",
};

const de: Record<keyof typeof en, string> = {
  title: "Import: {model}",
  lead: "Eine CSV-Datei, in der ersten Zeile Namen. Alle Zeilen werden übernommen, oder keine; ein Probelauf sagt es vorher.",
  file: "CSV-Datei",
  map: "Welche Spalte welches Feld ist",
  column: "Spalte",
  sample: "Erster Wert",
  field: "Feld",
  ignore: "– weglassen –",
  minor: "{label}: in kleinsten Einheiten (1234)",
  amount: "{label}: als Betrag (12,34)",
  rows: "{n} Zeilen",
  dry: "Probelauf",
  run: "{n} Zeilen importieren",
  fine: "Alle {n} Zeilen passen. Noch ist nichts geschrieben.",
  done: "{n} Datensätze angelegt.",
  see: "Ansehen",
  errors: "{n} Zeilen passen nicht; nichts wurde geschrieben",
  row: "Zeile",
  error: "Was nicht stimmt",
  "fault.amount": "„{text}“ in Zeile {row} ist kein Betrag",
  "fault.none": "Mindestens eine Spalte zuordnen",
};

export const say = words(en, de);
