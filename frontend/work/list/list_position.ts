// The position of a record in the list it was opened from, for the links to the previous and next record. Its address has
// the view, the filter and the order of the list, and the position.
import { query } from "../../shared/router";
import { type Model, type Row, run } from "../api";
import { addressOf, mayRun } from "../models";
import { listQuery, searchInput } from "./query";

const LIST_PARAMETERS = ["view", "filter", "order"];
const POSITION = "at";

export interface ListPosition {
  /** Filter and order of the list, as input for the API. */
  input: object;
  index: number;
}

const totals = new Map<string, number>();

function keyOf(model: Model, input: object): string {
  return `${model.name}?${JSON.stringify(input)}`;
}

/** Set the number of records of a list, so that it is not counted again. */
export function storeTotal(model: Model, input: object, total: number): void {
  totals.set(keyOf(model, input), total);
}

/** The view, the filter and the order that the address names. */
function listParameters(): URLSearchParams {
  return new URLSearchParams([...query.value].filter(([name]) => LIST_PARAMETERS.includes(name)));
}

/** The address of a record at a position of the list. */
export function addressInList(model: Model, id: string, index: number): string {
  const parameters = listParameters();
  parameters.set(POSITION, String(index + 1));
  return `${addressOf(model.name, id)}?${parameters.toString()}`;
}

/** The address of the list from which the record was opened. */
export function addressOfList(model: Model): string {
  const search = listParameters().toString();
  return `/models/${model.name}${search && `?${search}`}`;
}

/** The position that the address names, or null if the record was not opened from a list. */
export function currentPosition(model: Model): ListPosition | null {
  const position = Number(query.value.get(POSITION));
  return Number.isSafeInteger(position) && position > 0 && mayRun(model, "list") ? { input: searchInput(listQuery(model)), index: position - 1 } : null;
}

/** The number of records of the list, or null if this person may not count them. */
export async function totalOf(model: Model, { input }: ListPosition, signal: AbortSignal): Promise<number | null> {
  const knownTotal = totals.get(keyOf(model, input));
  if (knownTotal !== undefined || !mayRun(model, "search")) {
    return knownTotal ?? null;
  }
  const { total } = (await run<{ total: number }>(model.name, "search", { ...input, limit: 1 }, signal)).value;
  storeTotal(model, input, total);
  return total;
}

/** The address of the previous or next record; null at an end of the list. */
export async function addressOfNeighbour(model: Model, { input, index }: ListPosition, step: 1 | -1): Promise<string | null> {
  const nextIndex = index + step;
  const response = nextIndex < 0 ? null : await run<Row[]>(model.name, "list", { ...input, limit: 1, offset: nextIndex }).catch(() => null);
  const id = response?.value[0]?.id;
  return id ? addressInList(model, id, nextIndex) : null;
}
