// Whether somebody is signed in; who it is, and by what right, is the server's matter.
import { signal } from "@preact/signals";
import { send, setSessionMark } from "./client";

export const isSignedIn = signal<boolean | null>(null);

/** Ask the server anew. */
export async function loadSession(): Promise<void> {
  const answer = await send("GET", "/session");
  const told = (await answer.json()) as { signed_in: boolean; mark: string };
  setSessionMark(told.mark);
  isSignedIn.value = told.signed_in;
}
