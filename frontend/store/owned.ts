// Which of the shown products the person owns and follows. Lists are the same for everyone, so this is a separate request.
import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "./api";
import { me } from "./me";

const MAX_IDS = 100;

/** Ids of products; empty if no person is signed in. */
export const owned = signal<ReadonlySet<string>>(new Set());
export const followedProducts = signal<ReadonlySet<string>>(new Set());

/** The products whose state was requested, successfully or not. */
const known = signal<ReadonlySet<string>>(new Set());
const shown = new Set<string>();
let asked = new Set<string>();
let isScheduled = false;

effect(() => {
  const who = me.value;
  owned.value = new Set();
  followedProducts.value = new Set();
  known.value = new Set();
  asked = new Set();
  if (who) {
    schedule();
  }
});

/** Request whether the person owns and follows this product. Return whether it is known already. */
export function useOwnedState(id: string): boolean {
  useEffect(() => {
    if (id && !shown.has(id)) {
      shown.add(id);
      schedule();
    }
  }, [id]);
  return known.value.has(id);
}

/** Send one request for all products that are rendered at the same time. */
function schedule(): void {
  if (!isScheduled && me.peek()) {
    isScheduled = true;
    setTimeout(() => {
      isScheduled = false;
      const ids = [...shown].filter((each) => !asked.has(each));
      for (let at = 0; at < ids.length; at += MAX_IDS) {
        void read(ids.slice(at, at + MAX_IDS));
      }
    });
  }
}

async function read(ids: readonly string[]): Promise<void> {
  const who = me.peek();
  ids.forEach((each) => asked.add(each));
  try {
    const found = (await api.get("/api/v1/me/owned", { query: { ids: ids.join() } })).value;
    if (who === me.peek()) {
      owned.value = new Set([...owned.peek(), ...found.owned]);
      followedProducts.value = new Set([...followedProducts.peek(), ...found.followed]);
    }
  } catch {
    // Cards then show the access without ownership.
  }
  if (who === me.peek()) {
    known.value = new Set([...known.peek(), ...ids]);
  }
}
