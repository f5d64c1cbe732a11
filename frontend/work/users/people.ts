// People and their roles, and the API calls of an administrator.
import { type Meta, type Row, run } from "../api";
import { mayRun, modelOf } from "../models";

export const MAX_PEOPLE = 500;

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
  /** Maps each person to the person's roles. */
  memberships: ReadonlyMap<string, Membership[]>;
}

/** The name of a role in words: modules name their roles like "sales_manager". */
export function roleName(role: Row): string {
  const words = String(role["title"]).replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Whether this person may manage people. */
export function managesPeople(meta: Meta): boolean {
  const user = modelOf(meta, "user");
  return user !== undefined && mayRun(user, "list") && mayRun(user, "invite") && mayRun(user, "update");
}

export async function loadPeople(signal: AbortSignal): Promise<People> {
  const listAll = (model: string, input: object) => run<Row[]>(model, "list", input, signal);
  const order = [{ field: "username", dir: "asc" }];
  const people = (await listAll("user", { order, limit: MAX_PEOPLE + 1 })).value as Person[];
  const filter = [{ field: "user", op: "in", value: people.slice(0, MAX_PEOPLE).map((person) => person.id) }];
  const [roles, links] = await Promise.all([
    listAll("role", { order: [{ field: "title", dir: "asc" }], limit: MAX_PEOPLE }),
    listAll("user_role", { filter, limit: 5000 }),
  ]);
  const memberships = new Map<string, Membership[]>();
  for (const link of links.value) {
    const user = String(link["user"]);
    memberships.set(user, [...(memberships.get(user) ?? []), { id: link.id, role: String(link["role"]) }]);
  }
  return { people, roles: roles.value, memberships };
}

/** Create a link for setting the person's password.
 *  @throws Problem if the service refuses it. */
export async function linkFor(id: string): Promise<string> {
  return (await run<{ link: string }>("user", "invite", { id })).value.link;
}

/** Set the person's roles: add the missing ones, remove the others.
 *  @throws Problem if a change is refused; earlier changes stay. */
export async function giveRoles(id: string, wantedRoles: ReadonlySet<string>, now: readonly Membership[]): Promise<void> {
  // Add roles before removing others, so that people who change their own roles keep the permission until the end.
  for (const role of wantedRoles) {
    if (!now.some((membership) => membership.role === role)) {
      await run("user_role", "create", { user: id, role });
    }
  }
  for (const membership of now) {
    if (!wantedRoles.has(membership.role)) {
      await run("user_role", "delete", { id: membership.id });
    }
  }
}

export async function setActive(person: Person, isActive: boolean): Promise<void> {
  await run("user", "update", { id: person.id, revision: person.revision, is_active: isActive });
}
