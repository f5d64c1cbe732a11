// The records of a model that belong to the person who is signed in.
import { type Meta, type Row, run } from "./api";
import { mayRun, modelOf } from "./models";

/** The id of the signed-in person, or undefined if this person may not list people. */
export async function ownId(meta: Meta, signal: AbortSignal): Promise<string | undefined> {
  const filter = [{ field: "username", op: "eq", value: meta.caller.name }];
  const answer = await run<Row[]>("user", "list", { filter, limit: 1 }, signal).catch(() => null);
  return answer?.value[0]?.id;
}

/** The filter on the person's own records, needed for administrators, who may read all records. Null for people who may
 *  not list people: the service then returns no private records of others.
 *  @throws Error if the person is unknown. */
export async function ownCondition(meta: Meta, signal: AbortSignal): Promise<{ field: "owner"; op: "eq"; value: string } | null> {
  const me = await ownId(meta, signal);
  const people = modelOf(meta, "user");
  if (me === undefined && people && mayRun(people, "list")) {
    throw new Error("the id of the person is not known");
  }
  return me === undefined ? null : { field: "owner", op: "eq", value: me };
}
