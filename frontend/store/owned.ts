// Which of the products that are shown the person owns. Lists are the same for everybody; this is asked apart.
import { effect, signal } from "@preact/signals";
import { me } from "./me";
import { ownedProductIds } from "./ownership";

/** Ids of products; empty where nobody is signed in. */
export const owned = signal<ReadonlySet<string>>(new Set());

effect(() => {
  const who = me.value;
  if (!who) {
    owned.value = new Set();
    return;
  }
  void readAll();
});

async function readAll(): Promise<void> {
  try {
    for await (const ids of ownedProductIds()) {
      owned.value = new Set([...owned.peek(), ...ids]);
    }
  } catch {
    // Cards then show how the product may be had.
  }
}
