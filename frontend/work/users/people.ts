// People with their roles, and what an administrator does with them: each a command of the API.
import { type Meta, type Row, run } from "../api";
import { may, modelOf } from "../models";

export const MOST_PEOPLE = 500;

export interface Person extends Row {
  username: string;
  is_active: boolean;
}

export interface Membership {
  id: string;
  role: string;
}

export interface People {
  people: Person[];
  roles: Row[];
  /** By person, the roles that are theirs. */
  memberships: ReadonlyMap<string, Membership[]>;
}

/** Whether this person manages others. */
export function managesPeople(meta: Meta): boolean {
  const user = modelOf(meta, "user");
  return user !== undefined && may(user, "list") && may(user, "invite") && may(user, "update");
}

export async function loadPeople(signal: AbortSignal): Promise<People> {
  const all = (model: string, input: object) => run<Row[]>(model, "list", input, signal);
  const order = [{ field: "username", dir: "asc" }];
  const people = (await all("user", { order, limit: MOST_PEOPLE + 1 })).value as Person[];
  const filter = [{ field: "user", op: "in", value: people.slice(0, MOST_PEOPLE).map((each) => each.id) }];
  const [roles, links] = await Promise.all([
    all("role", { order: [{ field: "title", dir: "asc" }], limit: MOST_PEOPLE }),
    all("user_role", { filter, limit: 5000 }),
  ]);
  const memberships = new Map<string, Membership[]>();
  for (const link of links.value) {
    const user = String(link["user"]);
    memberships.set(user, [...(memberships.get(user) ?? []), { id: link.id, role: String(link["role"]) }]);
  }
  return { people, roles: roles.value, memberships };
}

/** The link by which the person sets a password.
 *  @throws Problem where it is refused. */
export async function linkFor(id: string): Promise<string> {
  return (await run<{ link: string }>("user", "invite", { id })).value.link;
}

/** Give the person these roles, and take the others.
 *  @throws Problem where one of them is refused; what was done before stays. */
export async function giveRoles(id: string, wanted: ReadonlySet<string>, now: readonly Membership[]): Promise<void> {
  // Given before taken: who changes their own roles keeps the right to do so until the end.
  for (const role of wanted) {
    if (!now.some((each) => each.role === role)) {
      await run("user_role", "create", { user: id, role });
    }
  }
  for (const each of now) {
    if (!wanted.has(each.role)) {
      await run("user_role", "delete", { id: each.id });
    }
  }
}

export async function setActive(person: Person, isActive: boolean): Promise<void> {
  await run("user", "update", { id: person.id, revision: person.revision, is_active: isActive });
}
