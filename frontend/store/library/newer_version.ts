// Finds products of the library that have a newer release than the downloaded one.
import type { Schemas } from "../api";

export type NewerVersion = NonNullable<Schemas["Owned"]["update"]> & {
  downloadedVersion: string;
};

export function updateOf(product: Schemas["Owned"]): NewerVersion | undefined {
  return product.update ? { ...product.update, downloadedVersion: product.installed_version ?? "" } : undefined;
}
