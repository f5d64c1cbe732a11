// Finds the visible records that refer to a record to be deleted: those that are deleted too, and those that prevent it.
import { type Field, type Meta, type Model, type Row, run } from "../api";
import { canList, mayRun } from "../models";

export interface Dependent {
  model: Model;
  field: Field;
  /** The effect of `cascade` on these records: they are deleted, their field is cleared, or they prevent the deletion. */
  effect: "refuse" | "clear" | "cascade";
  count: number;
}

const PAGE_SIZE = 500;
const MAX_DEPTH = 8;

/** The records that refer to this one, or to records that are deleted with it, by model and field. */
export async function dependentsOf(meta: Meta, model: Model, id: string, signal: AbortSignal): Promise<Dependent[]> {
  const dependents = new Map<string, Dependent>();
  const deletedKeys = new Set([`${model.name}/${id}`]);
  let idsByModel = new Map([[model.name, [id]]]);
  for (let depth = 0; idsByModel.size > 0 && depth < MAX_DEPTH; depth += 1) {
    const nextIdsByModel = new Map<string, string[]>();
    for (const [target, ids] of idsByModel) {
      for (const [referringModel, field] of refsTo(meta, target)) {
        const rows = await referringRows(referringModel, field, ids, signal);
        const newRows = rows.filter((row) => !deletedKeys.has(`${referringModel.name}/${row.id}`));
        const effect = field.on_delete ?? "refuse";
        if (newRows.length > 0) {
          const key = `${referringModel.name}.${field.name}`;
          dependents.set(key, { model: referringModel, field, effect, count: (dependents.get(key)?.count ?? 0) + newRows.length });
        }
        if (effect === "cascade") {
          newRows.forEach((row) => deletedKeys.add(`${referringModel.name}/${row.id}`));
          nextIdsByModel.set(referringModel.name, [...(nextIdsByModel.get(referringModel.name) ?? []), ...newRows.map((row) => row.id)]);
        }
      }
    }
    idsByModel = new Map([...nextIdsByModel].filter(([, modelIds]) => modelIds.length > 0));
  }
  return [...dependents.values()];
}

function refsTo(meta: Meta, target: string): [Model, Field][] {
  const readable = meta.models.filter(canList);
  return readable.flatMap((model) => model.fields.filter((field) => field.ref === target).map((field) => [model, field] as [Model, Field]));
}

async function referringRows(model: Model, field: Field, ids: readonly string[], signal: AbortSignal): Promise<Row[]> {
  const rows: Row[] = [];
  for (let start = 0; start < ids.length; start += PAGE_SIZE) {
    const filter = [{ field: field.name, op: "in", value: ids.slice(start, start + PAGE_SIZE) }];
    if (mayRun(model, "list")) {
      rows.push(...(await run<Row[]>(model.name, "list", { filter, limit: PAGE_SIZE }, signal)).value);
    } else {
      rows.push(...(await run<{ rows: Row[] }>(model.name, "search", { filter, limit: PAGE_SIZE }, signal)).value.rows);
    }
  }
  return rows;
}
