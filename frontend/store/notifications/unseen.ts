// The number of unseen notifications. The server stores the time until which they were seen.
import { effect, signal } from "@preact/signals";
import { api } from "../api";
import { me } from "../me";

const EVERY_MS = 300_000;

/** At most 100; 0 if no person is signed in. */
export const unseen = signal(0);

effect(() => {
  const person = me.value;
  unseen.value = 0;
  if (!person) {
    return undefined;
  }
  void fetchCount();
  const timer = setInterval(() => document.hidden || void fetchCount(), EVERY_MS);
  return () => clearInterval(timer);
});

async function fetchCount(): Promise<void> {
  try {
    unseen.value = (await api.get("/api/v1/me/notifications", { query: { limit: 1 } })).value.unseen;
  } catch {
    // Keep the previous number.
  }
}

/** Mark the notifications up to now as seen. */
export async function markSeen(): Promise<void> {
  try {
    await api.post("/api/v1/me/notifications/seen", { body: { until: null } });
    unseen.value = 0;
  } catch {
    // They are then shown as unseen again.
  }
}
