// Which of the shown products the person owns and follows. Lists are the same for everyone, so this is a separate request.
import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "./api";
import { me } from "./me";

const MAX_IDS = 100;

/** Ids of products; empty if no person is signed in. */
export const ownedIds = signal<ReadonlySet<string>>(new Set());
export const followedProducts = signal<ReadonlySet<string>>(new Set());

/** The products whose state was requested, successfully or not. */
const knownIds = signal<ReadonlySet<string>>(new Set());
const shownIds = new Set<string>();
let requestedIds = new Set<string>();
let isScheduled = false;

effect(() => {
  const person = me.value;
  ownedIds.value = new Set();
  followedProducts.value = new Set();
  knownIds.value = new Set();
  requestedIds = new Set();
  if (person) {
    schedule();
  }
});

/** Request whether the person owns and follows this product. Return whether it is known already. */
export function useOwnedState(id: string): boolean {
  useEffect(() => {
    if (id && !shownIds.has(id)) {
      shownIds.add(id);
      schedule();
    }
  }, [id]);
  return knownIds.value.has(id);
}

/** Send one request for all products that are rendered at the same time. */
function schedule(): void {
  if (!isScheduled && me.peek()) {
    isScheduled = true;
    setTimeout(() => {
      isScheduled = false;
      const ids = [...shownIds].filter((shownId) => !requestedIds.has(shownId));
      for (let start = 0; start < ids.length; start += MAX_IDS) {
        void readOwned(ids.slice(start, start + MAX_IDS));
      }
    });
  }
}

async function readOwned(ids: readonly string[]): Promise<void> {
  const person = me.peek();
  ids.forEach((id) => requestedIds.add(id));
  try {
    const answer = (await api.get("/api/v1/me/owned", { query: { ids: ids.join() } })).value;
    if (person === me.peek()) {
      ownedIds.value = new Set([...ownedIds.peek(), ...answer.owned]);
      followedProducts.value = new Set([...followedProducts.peek(), ...answer.followed]);
    }
  } catch {
    // Cards then show the access without ownership.
  }
  if (person === me.peek()) {
    knownIds.value = new Set([...knownIds.peek(), ...ids]);
  }
}
