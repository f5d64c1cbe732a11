// Whether the server can be reached. After a request without an answer, it is polled until it answers.
import { effect, signal } from "@preact/signals";

const PAUSE_MS = 1000;
const PATIENCE_MS = 4000;

/** Whether the last request had no answer, and no poll has had one since. */
export const isServerUnreachable = signal(false);

/** A request had no answer: poll the server from now on. */
export function reportUnreachable(): void {
  if (!isServerUnreachable.peek()) {
    isServerUnreachable.value = true;
    void pollUntilReachable();
  }
}

addEventListener("offline", reportUnreachable);

async function pollUntilReachable(): Promise<void> {
  while (isServerUnreachable.peek()) {
    await pause();
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const answer = await fetch("/session", { cache: "no-store", signal }).catch(() => null);
    if (answer !== null && answer.status < 500) {
      isServerUnreachable.value = false;
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
export function waitUntilReachable(until: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = effect(() => void (isServerUnreachable.value || queueMicrotask(finish)));
    const finish = () => (end(), until.removeEventListener("abort", finish), done());
    until.addEventListener("abort", finish);
  });
}
