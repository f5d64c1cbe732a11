// The words of an organisation's usage.
import { words } from "../../shared/words";

const en = {
  "usage.what": "What",
  "usage.number": "Number",
  "usage.bar": "Compared",
  "usage.downloads": "Downloads",
  "usage.redemptions": "Redeemed codes",
  "usage.codes": "Issued codes",
  "usage.products": "Products",
  "usage.public_products": "Public products",
  "usage.releases": "Releases",
  "usage.artifacts": "Files",
  "usage.members": "Members",
  "usage.clients": "Programs",
  "usage.stored": "{size} are stored.",
  "usage.versions": "Most downloaded versions",
  "usage.versions.none": "Nothing was downloaded yet.",
};

const de: Record<keyof typeof en, string> = {
  "usage.what": "Was",
  "usage.number": "Anzahl",
  "usage.bar": "Im Vergleich",
  "usage.downloads": "Downloads",
  "usage.redemptions": "Eingelöste Codes",
  "usage.codes": "Ausgegebene Codes",
  "usage.products": "Produkte",
  "usage.public_products": "Öffentliche Produkte",
  "usage.releases": "Versionen",
  "usage.artifacts": "Dateien",
  "usage.members": "Mitglieder",
  "usage.clients": "Programme",
  "usage.stored": "{size} sind gespeichert.",
  "usage.versions": "Meistgeladene Versionen",
  "usage.versions.none": "Noch wurde nichts geladen.",
};

export const say = words(en, de);
