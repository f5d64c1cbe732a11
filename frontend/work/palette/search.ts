// The search of the command palette: pages and commands by their words, records by their titles.
import { go } from "../../shared/router";
import { type Meta, type Row, run } from "../api";
import { addressOf, canList, fieldOf, workflowField, may, titleOf, businessModels } from "../models";
import { cacheRecords } from "../referenced_records";
import { pageEntries, type PaletteEntry } from "./entries";
import { translator } from "../../shared/i18n";

const tWork = translator("work");
const t = translator("palette");

const EACH = 5;
const LEAST = 2;

/** The general entries, and those of the current page. */
export function allEntries(meta: Meta): PaletteEntry[] {
  const to = (words: string, address: string): PaletteEntry => ({ words, run: () => go(address) });
  const lists = meta.models.filter(canList);
  return [
    ...pageEntries.peek(),
    ...lists.map((each) => to(t("go.to", { name: each.plural }), `/models/${each.name}`)),
    to(t("go.to", { name: tWork("approvals") }), "/approvals"),
    to(t("go.to", { name: tWork("dashboard") }), "/dashboard"),
    to(t("go.to", { name: tWork("agents") }), "/agents"),
    to(t("go.to", { name: tWork("connect") }), "/connect"),
    ...lists.filter((each) => each.name === "audit_entry").map(() => to(t("go.to", { name: tWork("audit") }), "/audit")),
    ...meta.models.filter((each) => may(each, "create")).map((each) => to(t("new", { name: each.label }), `/models/${each.name}/new`)),
    ...meta.models.filter((each) => may(each, "import")).map((each) => to(t("import", { name: each.plural }), `/models/${each.name}/import`)),
    ...businessModels(meta).filter(workflowField).map((each) => to(t("board", { name: each.plural }), `/models/${each.name}/board`)),
  ];
}

/** The entries that contain every typed word. */
export function matchingEntries(offers: readonly PaletteEntry[], text: string): PaletteEntry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return offers.filter((each) => words.every((word) => each.words.toLowerCase().includes(word)));
}

/** The records whose title contains the text, of every model that can be searched by title. */
export async function recordEntries(meta: Meta, text: string, signal: AbortSignal): Promise<PaletteEntry[]> {
  const models = businessModels(meta).filter((each) => {
    const field = fieldOf(each, each.shown_as);
    return field?.kind === "text" && !field.masked && field.name !== "id" && may(each, "list") && may(each, "get");
  });
  if (text.trim().length < LEAST) {
    return [];
  }
  const found = await Promise.all(
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
  return found.flat();
}
