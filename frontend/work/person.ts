// Who is signed in, and what there is for them; asked for once, and anew after a sign-in.
import { signal } from "@preact/signals";
import { send } from "../shared/client";
import { Problem } from "../shared/problem";
import { go } from "../shared/router";
import { isSignedIn, lookWho } from "../shared/session";
import { type Meta, meta } from "./api";

/** null: not known yet; "nobody": sign-in is needed. */
export const known = signal<Meta | "nobody" | Problem | null>(null);

export async function look(): Promise<void> {
  try {
    await lookWho();
    known.value = isSignedIn.peek() ? await meta() : "nobody";
  } catch (error) {
    const problem = error instanceof Problem ? error : Problem.offline();
    known.value = problem.status === 401 ? "nobody" : problem;
  }
}

/** @throws Problem when it is refused. */
export async function signIn(username: string, password: string): Promise<void> {
  await send("POST", "/signin", { body: { username, password } });
  await look();
}

export async function signOut(): Promise<void> {
  await send("POST", "/signout");
  // What was typed and not saved is this person's alone.
  sessionStorage.clear();
  known.value = "nobody";
  go("/signin");
}
