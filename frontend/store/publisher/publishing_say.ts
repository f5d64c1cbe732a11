// The words of the question before a release is published.
import { words } from "../../shared/words";

const en = {
  "publish.title": "Publish {product} {version}?",
  "publish.text": "Customers of {channel} get it at once. It cannot become a draft again.",
  "publish.first": "The product becomes public, and customers of {channel} get it at once. It cannot become a draft again.",
  "publish.empty": "The release has no file. Upload one first.",
  "publish.unready": "Not all files are ready: {files}. Wait for them, or upload them again.",
  "files.one": "{n} file",
  "files.n": "{n} files",
  "notes.none": "None",
};

const de: Record<keyof typeof en, string> = {
  "publish.title": "{product} {version} veröffentlichen?",
  "publish.text": "Wer {channel} bezieht, bekommt sie sofort. Sie kann nicht wieder zum Entwurf werden.",
  "publish.first": "Das Produkt wird öffentlich, und wer {channel} bezieht, bekommt die Version sofort. Sie kann nicht wieder zum Entwurf werden.",
  "publish.empty": "Die Version hat keine Datei. Laden Sie zuerst eine hoch.",
  "publish.unready": "Nicht alle Dateien sind fertig: {files}. Warten Sie, oder laden Sie sie noch einmal hoch.",
  "files.one": "{n} Datei",
  "files.n": "{n} Dateien",
  "notes.none": "Keine",
};

export const say = words(en, de);
