// Finds the visible records that refer to a record to be deleted: those that are deleted too, and those that prevent it.
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { canList, may } from "../models";

export interface Dependent {
  model: Model;
  field: Field;
  /** The effect of `cascade` on these records: they are deleted, their field is cleared, or they prevent the deletion. */
  effect: "refuse" | "clear" | "cascade";
  count: number;
}

const MOST = 500;
const DEEPEST = 8;

/** The records that refer to this one, or to records that are deleted with it, by model and field. */
export async function dependentsOf(meta: Meta, model: Model, id: string, signal: AbortSignal): Promise<Dependent[]> {
  const found = new Map<string, Dependent>();
  const gone = new Set([`${model.name}/${id}`]);
  let level = new Map([[model.name, [id]]]);
  for (let depth = 0; level.size > 0 && depth < DEEPEST; depth += 1) {
    const next = new Map<string, string[]>();
    for (const [target, ids] of level) {
      for (const [referring, field] of refsTo(meta, target)) {
        const rows = await referringRows(referring, field, ids, signal);
        const others = rows.filter((row) => !gone.has(`${referring.name}/${row.id}`));
        const effect = field.on_delete ?? "refuse";
        if (others.length > 0) {
          const key = `${referring.name}.${field.name}`;
          found.set(key, { model: referring, field, effect, count: (found.get(key)?.count ?? 0) + others.length });
        }
        if (effect === "cascade") {
          others.forEach((row) => gone.add(`${referring.name}/${row.id}`));
          next.set(referring.name, [...(next.get(referring.name) ?? []), ...others.map((row) => row.id)]);
        }
      }
    }
    level = new Map([...next].filter(([, several]) => several.length > 0));
  }
  return [...found.values()];
}

function refsTo(meta: Meta, target: string): [Model, Field][] {
  const readable = meta.models.filter(canList);
  return readable.flatMap((model) => model.fields.filter((field) => field.ref === target).map((field) => [model, field] as [Model, Field]));
}

async function referringRows(model: Model, field: Field, ids: readonly string[], signal: AbortSignal): Promise<Row[]> {
  const found: Row[] = [];
  for (let from = 0; from < ids.length; from += MOST) {
    const filter = [{ field: field.name, op: "in", value: ids.slice(from, from + MOST) }];
    if (may(model, "list")) {
      found.push(...(await run<Row[]>(model.name, "list", { filter, limit: MOST }, signal)).value);
    } else {
      found.push(...(await run<{ rows: Row[] }>(model.name, "search", { filter, limit: MOST }, signal)).value.rows);
    }
  }
  return found;
}
