// Which products of the library have a newer release than the one that was downloaded.
import type { Schemas } from "../api";
import { newerRelease, productNotes } from "../product_notes";

export interface NewerVersion {
  version: string;
  channel: string;
  published_at: string;
  /** The version that was downloaded. */
  had: string;
}

/** What is newer: than what was downloaded in this browser, or else than what the account says was downloaded. */
export function updateOf(product: Schemas["Owned"]): NewerVersion | undefined {
  const newer = newerRelease(product.id, product.channels);
  if (newer) {
    return { ...newer, had: productNotes.value[product.id]?.fetched?.[newer.channel] ?? "" };
  }
  const isFetchedHere = productNotes.value[product.id]?.fetched !== undefined;
  return product.update && !isFetchedHere ? { ...product.update, had: product.installed_version ?? "" } : undefined;
}
