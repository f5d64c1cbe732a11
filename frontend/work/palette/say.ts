// The words of the palette.
import { words } from "../../shared/words";

const en = {
  title: "Go to, search, do",
  label: "What do you want to do?",
  none: "Nothing found",
  results: "Found",
  "go.to": "Go to {name}",
  new: "New: {name}",
  import: "Import: {name}",
  board: "Board: {name}",
  record: "{model}: {name}",
};

const de: Record<keyof typeof en, string> = {
  title: "Gehen, suchen, tun",
  label: "Was möchten Sie tun?",
  none: "Nichts gefunden",
  results: "Gefunden",
  "go.to": "Zu {name}",
  new: "Neu: {name}",
  import: "Importieren: {name}",
  board: "Tafel: {name}",
  record: "{model}: {name}",
};

export const say = words(en, de);
