// Who is signed in and what they may do; asked once, and only where somebody is.
import { computed, effect, signal } from "@preact/signals";
import { send } from "../shared/client";
import { isSignedIn } from "../shared/session";

export interface Me {
  email: string;
  scope: string;
  orgs: string[];
  /** By organisation: viewer, publisher or owner. */
  roles: Record<string, string>;
}

/** Undefined until it is known, null where nobody is signed in. */
export const me = signal<Me | null | undefined>(undefined);

/** Whether the person has a role in an organisation that lets them publish. */
export const isPublisher = computed(() => Boolean(me.value?.orgs.length && /write:|admin:/.test(me.value.scope)));

/** Whether the person administers this organisation. */
export function isOwnerOf(org: string): boolean {
  return me.value?.roles[org] === "owner";
}

effect(() => {
  if (isSignedIn.value === false) {
    me.value = null;
  } else if (isSignedIn.value) {
    void fetchMe();
  }
});

async function fetchMe(): Promise<void> {
  try {
    const told = (await (await send("GET", "/api/v1/auth/me")).json()) as Partial<Me>;
    me.value = { email: told.email ?? "", scope: told.scope ?? "", orgs: told.orgs ?? [], roles: told.roles ?? {} };
  } catch {
    // The pages then show what everybody sees; what needs more says so itself.
    me.value = null;
  }
}
