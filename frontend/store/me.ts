// The signed-in person and their permissions. Loaded once, if a person is signed in.
import { computed, effect, signal } from "@preact/signals";
import { send } from "../shared/client";
import { clearStoredInput } from "./stored_input";
import { isSignedIn, loadWhenReachable } from "../shared/session";

const PERSON = "person";

export interface Me {
  email: string;
  scope: string;
  orgs: string[];
  /** The role in each organisation: viewer, publisher or owner. */
  roles: Record<string, string>;
}

/** Undefined while loading, null if no person is signed in. */
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

/** Delete what another person typed in this tab, such as notes and codes. */
function clearInputOfOthers(email: string): void {
  if ((sessionStorage.getItem(PERSON) ?? email) !== email) {
    clearStoredInput();
  }
  sessionStorage.setItem(PERSON, email);
}

async function fetchMe(): Promise<void> {
  try {
    const answer = await loadWhenReachable(() => send("GET", "/api/v1/auth/me"));
    const answerBody = (await answer.json()) as Partial<Me>;
    clearInputOfOthers(answerBody.email ?? "");
    me.value = { email: answerBody.email ?? "", scope: answerBody.scope ?? "", orgs: answerBody.orgs ?? [], roles: answerBody.roles ?? {} };
  } catch {
    // The pages then show public content. Parts that need a sign-in show their own message.
    me.value = null;
  }
}
