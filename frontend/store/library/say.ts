// The words of what a person notes and follows.
import { words } from "../../shared/words";

const en = {
  shelf: "Yours alone",
  "shelf.full": "This browser does not keep it: it allows this site no more space.",
  "shelf.here": "What you note stays here",
  "shelf.here.text":
    "Notes, collections, what is hidden or followed, and which version you downloaded: this browser keeps them and tells nobody, the store neither. In another browser they are not there.",
  "shelf.forget": "Forget all of it",
  "shelf.forgotten": "Forgotten",
  collections: "Collections",
  "collections.help": "Names with commas between them",
  note: "Note",
  update: "Update: {version} (you downloaded {had})",
  "library.hide": "Hide",
  "library.show": "Show again",
  "library.hidden": "Hidden",
  "library.hidden.one": "{title} is hidden",
  "library.hidden.with": "Show hidden ones ({n})",
  "library.order.": "Newest in the library",
  "library.order.updated": "Recently updated",
  "library.order.title": "Title",
  follow: "Follow",
  feed: "Feed (Atom)",
  "following.none": "You follow nothing yet",
  "following.none.text": "Press Follow on the page of a product, and what is new of it stands here.",
  "following.text": "What you follow stays in this browser. By the feed, any reader tells you of a new release.",
  "following.new": "New",
  "following.end": "Stop following",
  undo: "Undo",
};

const de: Record<keyof typeof en, string> = {
  shelf: "Nur für Sie",
  "shelf.full": "Dieser Browser behält es nicht: Er gibt dieser Seite keinen Platz mehr.",
  "shelf.here": "Was Sie notieren, bleibt hier",
  "shelf.here.text":
    "Notizen, Sammlungen, was versteckt ist oder verfolgt wird, und welche Version Sie geladen haben: Dieser Browser behält es und sagt es niemandem, auch dem Laden nicht. In einem anderen Browser ist es nicht da.",
  "shelf.forget": "Alles vergessen",
  "shelf.forgotten": "Vergessen",
  collections: "Sammlungen",
  "collections.help": "Namen mit Komma dazwischen",
  note: "Notiz",
  update: "Neu: {version} (geladen haben Sie {had})",
  "library.hide": "Verstecken",
  "library.show": "Wieder zeigen",
  "library.hidden": "Versteckt",
  "library.hidden.one": "{title} ist versteckt",
  "library.hidden.with": "Versteckte zeigen ({n})",
  "library.order.": "Zuletzt erhalten",
  "library.order.updated": "Zuletzt aktualisiert",
  "library.order.title": "Titel",
  follow: "Verfolgen",
  feed: "Feed (Atom)",
  "following.none": "Sie verfolgen noch nichts",
  "following.none.text": "Drücken Sie auf der Seite eines Produkts Verfolgen, und hier steht, was es davon Neues gibt.",
  "following.text":
    "Was Sie verfolgen, bleibt in diesem Browser. Über den Feed meldet jeder Feedleser eine neue Version.",
  "following.new": "Neu",
  "following.end": "Nicht mehr verfolgen",
  undo: "Rückgängig",
};

export const say = words(en, de);
