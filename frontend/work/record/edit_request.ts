// Opens all fields of the record in front; null where it may not be changed.
import { signal } from "@preact/signals";

export const editRecord = signal<(() => void) | null>(null);
