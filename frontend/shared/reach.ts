// Whether the server can be reached, for all parts of a page: after a call without an answer it is looked for until it is back.
import { effect, signal } from "@preact/signals";

const PAUSE_MS = 1000;
const PATIENCE_MS = 4000;

/** No answer comes at the moment. */
export const isLost = signal(false);

/** A call had no answer: look for the server from now on. */
export function lost(): void {
  if (!isLost.peek()) {
    isLost.value = true;
    void look();
  }
}

addEventListener("offline", lost);

async function look(): Promise<void> {
  while (isLost.peek()) {
    await pause();
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const answer = await fetch("/session", { cache: "no-store", signal }).catch(() => null);
    if (answer !== null && answer.status < 500) {
      isLost.value = false;
    }
  }
}

/** Not all windows at the same time; at once where this one is looked at again, since hidden ones are slowed down. */
function pause(): Promise<unknown> {
  const seen = new AbortController();
  const { signal } = seen;
  const awake = new Promise((done) => {
    setTimeout(done, PAUSE_MS * (0.75 + Math.random() / 2));
    document.addEventListener("visibilitychange", done, { signal });
    addEventListener("online", done, { signal });
  });
  return awake.finally(() => seen.abort());
}

/** Wait until the server can be reached, or `until` is aborted. */
export function reached(until: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = effect(() => void (isLost.value || queueMicrotask(finish)));
    const finish = () => (end(), until.removeEventListener("abort", finish), done());
    until.addEventListener("abort", finish);
  });
}
