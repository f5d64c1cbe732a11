// What the palette finds: places and commands by their words, records by the field that names them.
import { go } from "../../shared/router";
import { type Meta, type Row, run } from "../api";
import { addressOf, canList, fieldOf, governed, may, titleOf, worked } from "../models";
import { note } from "../refs";
import { offered, type Offer } from "./offers";
import { translator } from "../../shared/i18n";

const tWork = translator("work");
const t = translator("palette");

const EACH = 5;
const LEAST = 2;

/** What can be done everywhere, and what the page in front offers. */
export function known(meta: Meta): Offer[] {
  const to = (words: string, address: string): Offer => ({ words, run: () => go(address) });
  const lists = meta.models.filter(canList);
  return [
    ...offered.peek(),
    ...lists.map((each) => to(t("go.to", { name: each.plural }), `/models/${each.name}`)),
    to(t("go.to", { name: tWork("approvals") }), "/approvals"),
    to(t("go.to", { name: tWork("dashboard") }), "/dashboard"),
    to(t("go.to", { name: tWork("agents") }), "/agents"),
    to(t("go.to", { name: tWork("connect") }), "/connect"),
    ...lists.filter((each) => each.name === "audit_entry").map(() => to(t("go.to", { name: tWork("audit") }), "/audit")),
    ...meta.models.filter((each) => may(each, "create")).map((each) => to(t("new", { name: each.label }), `/models/${each.name}/new`)),
    ...meta.models.filter((each) => may(each, "import")).map((each) => to(t("import", { name: each.plural }), `/models/${each.name}/import`)),
    ...worked(meta).filter(governed).map((each) => to(t("board", { name: each.plural }), `/models/${each.name}/board`)),
  ];
}

/** Those that have every word that was typed. */
export function matching(offers: readonly Offer[], text: string): Offer[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return offers.filter((each) => words.every((word) => each.words.toLowerCase().includes(word)));
}

/** Records whose name has the text, of every model whose names may be searched. */
export async function records(meta: Meta, text: string, signal: AbortSignal): Promise<Offer[]> {
  const models = worked(meta).filter((each) => {
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
      note(model, rows?.value ?? []);
      return (rows?.value ?? []).map((row) => ({
        words: t("record", { model: model.label, name: titleOf(model, row) }),
        run: () => go(addressOf(model.name, row.id)),
      }));
    }),
  );
  return found.flat();
}
