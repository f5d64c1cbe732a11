// Which products of the library have a newer release than the one that was downloaded.
import type { Schemas } from "../api";

export type NewerVersion = NonNullable<Schemas["Owned"]["update"]> & {
  /** The version that was downloaded. */
  had: string;
};

export function updateOf(product: Schemas["Owned"]): NewerVersion | undefined {
  return product.update ? { ...product.update, had: product.installed_version ?? "" } : undefined;
}
