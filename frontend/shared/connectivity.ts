// Whether the server can be reached. After a request without an answer, it is polled until it answers.
import { effect, signal } from "@preact/signals";

const PAUSE_MS = 1000;
const PATIENCE_MS = 4000;

/** Whether the last request got no answer, and no poll has succeeded since. */
export const isServerUnreachable = signal(false);

/** Report that a request got no answer. The server is polled until it answers. */
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

/** Wait a random time, so that windows do not poll together. The wait ends early if the window becomes visible or
 *  the network returns. */
function pause(): Promise<unknown> {
  const visibility = new AbortController();
  const { signal } = visibility;
  const awake = new Promise((resolve) => {
    setTimeout(resolve, PAUSE_MS * (0.75 + Math.random() / 2));
    document.addEventListener("visibilitychange", resolve, { signal });
    addEventListener("online", resolve, { signal });
  });
  return awake.finally(() => visibility.abort());
}

/** Wait until the server can be reached, or `signal` is aborted. */
export function waitUntilReachable(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let stopEffect = () => {};
    const finish = () => {
      stopEffect();
      signal.removeEventListener("abort", finish);
      resolve();
    };
    signal.addEventListener("abort", finish);
    // The effect runs at once, so it finishes in a microtask, after `stopEffect` is assigned.
    stopEffect = effect(() => {
      if (!isServerUnreachable.value) {
        queueMicrotask(finish);
      }
    });
  });
}
