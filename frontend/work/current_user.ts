// The signed-in user and what the API offers them; read once, and again after a sign-in.
import { signal } from "@preact/signals";
import { send } from "../shared/client";
import { Problem } from "../shared/problem";
import { go } from "../shared/router";
import { isSignedIn, loadSession } from "../shared/session";
import { type Meta, meta } from "./api";

const PERSON = "person";
const WAS_SIGNED_IN = "countersign-was-signed-in";

/** Whether a person was signed in when this browser last loaded a page. */
export const wasSignedIn = localStorage.getItem(WAS_SIGNED_IN) !== null;

/** null while it is loading; "anonymous" if sign-in is needed. */
export const currentUser = signal<Meta | "anonymous" | Problem | null>(null);

export async function loadCurrentUser(): Promise<void> {
  try {
    await loadSession();
    const user = isSignedIn.peek() ? await meta() : "anonymous";
    if (user !== "anonymous") {
      keepFor(user.caller.name);
      localStorage.setItem(WAS_SIGNED_IN, "1");
    } else {
      localStorage.removeItem(WAS_SIGNED_IN);
    }
    currentUser.value = user;
  } catch (error) {
    const problem = Problem.from(error);
    currentUser.value = problem.status === 401 ? "anonymous" : problem;
  }
}

/** Delete the drafts in this tab if another person signs in. */
function keepFor(name: string): void {
  if ((sessionStorage.getItem(PERSON) ?? name) !== name) {
    sessionStorage.clear();
  }
  sessionStorage.setItem(PERSON, name);
}

/** @throws Problem if the sign-in is refused. */
export async function signIn(username: string, password: string): Promise<void> {
  await send("POST", "/signin", { body: { username, password } });
  await loadCurrentUser();
}

export async function signOut(): Promise<void> {
  await send("POST", "/signout");
  sessionStorage.clear();
  currentUser.value = "anonymous";
  go("/signin");
}
