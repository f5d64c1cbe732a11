// The words around values.
import { words } from "../../shared/words";

const en = {
  "money.fault": "{label} is an amount with two decimals at most",
  "number.fault": "{label} is a whole number",
  nothing: "– none –",
  replace: "Replace",
  keep: "Keep the value",
  "masked.new": "New value; it cannot be read back",
  "ref.search": "Type to search, or choose",
  "ref.none": "Nothing found",
  "ref.hidden": "Record {id}",
  "ref.clear": "Clear",
  "ref.recent": "recent",
  "ref.make": "New: {label}…",
  "ref.make.named": "New: {label} “{text}”…",
  "in.help": "One value a line",
};

const de: Record<keyof typeof en, string> = {
  "money.fault": "{label} ist ein Betrag mit höchstens zwei Nachkommastellen",
  "number.fault": "{label} ist eine ganze Zahl",
  nothing: "– nichts –",
  replace: "Ersetzen",
  keep: "Wert behalten",
  "masked.new": "Neuer Wert; er lässt sich nicht zurücklesen",
  "ref.search": "Tippen zum Suchen, oder auswählen",
  "ref.none": "Nichts gefunden",
  "ref.hidden": "Datensatz {id}",
  "ref.clear": "Leeren",
  "ref.recent": "zuletzt",
  "ref.make": "Neu: {label}…",
  "ref.make.named": "Neu: {label} „{text}“…",
  "in.help": "Ein Wert je Zeile",
};

export const say = words(en, de);
