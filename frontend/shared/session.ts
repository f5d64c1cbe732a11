// Whether the visitor is signed in. Who it is, and their permissions, only the server knows.
import { signal } from "@preact/signals";
import { send, setSessionMark } from "./client";

export const isSignedIn = signal<boolean | null>(null);

/** Ask the server again whether the visitor is signed in. */
export async function loadSession(): Promise<void> {
  const answer = await send("GET", "/session");
  const told = (await answer.json()) as { signed_in: boolean; mark: string };
  setSessionMark(told.mark);
  isSignedIn.value = told.signed_in;
}
