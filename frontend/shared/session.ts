// Whether the visitor is signed in. Only the server knows the visitor's name and permissions.
import { signal } from "@preact/signals";
import { send, setSessionMark } from "./client";
import { reportUnreachable, waitUntilReachable } from "./connectivity";
import { Problem } from "./problem";

export const isSignedIn = signal<boolean | null>(null);

/** Ask the server again whether the visitor is signed in. */
export async function loadSession(): Promise<void> {
  const answer = await send("GET", "/session");
  const reply = (await answer.json()) as { signed_in: boolean; mark: string };
  setSessionMark(reply.mark);
  isSignedIn.value = reply.signed_in;
}

/** Load data that a page needs once. While the server cannot be reached, wait and try again.
 *  @throws Problem if the server refuses the request. */
export async function loadWhenReachable<Value>(load: () => Promise<Value>): Promise<Value> {
  for (;;) {
    try {
      return await load();
    } catch (error) {
      if (!Problem.from(error).isOffline) {
        throw error;
      }
      reportUnreachable();
      await waitUntilReachable(new AbortController().signal);
    }
  }
}
