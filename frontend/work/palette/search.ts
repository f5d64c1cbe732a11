// The search of the command palette: pages and commands by their words, records by their titles.
import { go } from "../../shared/router";
import { type Meta, type Row, run } from "../api";
import { addressOf, canList, fieldOf, workflowField, mayRun, titleOf, businessModels } from "../models";
import { cacheRecords } from "../referenced_records";
import { pageEntries, type PaletteEntry } from "./entries";
import { translator } from "../../shared/i18n";

const tWork = translator("work");
const t = translator("palette");

const EACH = 5;
const MIN_LENGTH = 2;

/** The general entries, and those of the current page. */
export function allEntries(meta: Meta): PaletteEntry[] {
  const entryTo = (words: string, address: string): PaletteEntry => ({ words, run: () => go(address) });
  const lists = meta.models.filter(canList);
  return [
    ...pageEntries.peek(),
    ...lists.map((list) => entryTo(t("go.to", { name: list.plural }), `/models/${list.name}`)),
    entryTo(t("go.to", { name: tWork("approvals") }), "/approvals"),
    entryTo(t("go.to", { name: tWork("dashboard") }), "/dashboard"),
    entryTo(t("go.to", { name: tWork("agents") }), "/agents"),
    entryTo(t("go.to", { name: tWork("connect") }), "/connect"),
    ...lists.filter((list) => list.name === "audit_entry").map(() => entryTo(t("go.to", { name: tWork("audit") }), "/audit")),
    ...meta.models.filter((model) => mayRun(model, "create")).map((model) => entryTo(t("new", { name: model.label }), `/models/${model.name}/new`)),
    ...meta.models.filter((model) => mayRun(model, "import")).map((model) => entryTo(t("import", { name: model.plural }), `/models/${model.name}/import`)),
    ...businessModels(meta).filter(workflowField).map((businessModel) => entryTo(t("board", { name: businessModel.plural }), `/models/${businessModel.name}/board`)),
  ];
}

/** The entries that contain every typed word. */
export function matchingEntries(offers: readonly PaletteEntry[], text: string): PaletteEntry[] {
  const searchWords = text.toLowerCase().split(/\s+/).filter(Boolean);
  return offers.filter((offer) => searchWords.every((word) => offer.words.toLowerCase().includes(word)));
}

/** The records whose title contains the text, of every model that can be searched by title. */
export async function recordEntries(meta: Meta, text: string, signal: AbortSignal): Promise<PaletteEntry[]> {
  const models = businessModels(meta).filter((model) => {
    const field = fieldOf(model, model.shown_as);
    return field?.kind === "text" && !field.masked && field.name !== "id" && mayRun(model, "list") && mayRun(model, "get");
  });
  if (text.trim().length < MIN_LENGTH) {
    return [];
  }
  const recordLists = await Promise.all(
    models.map(async (model) => {
      const filter = [{ field: model.shown_as, op: "contains", value: text.trim() }];
      const rows = await run<Row[]>(model.name, "list", { filter, limit: EACH }, signal).catch(() => null);
      cacheRecords(model, rows?.value ?? []);
      return (rows?.value ?? []).map((row) => ({
        words: t("record", { model: model.label, name: titleOf(model, row) }),
        run: () => go(addressOf(model.name, row.id)),
      }));
    }),
  );
  return recordLists.flat();
}
