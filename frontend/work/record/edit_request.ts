// A function that opens all fields of the current record; null if the record may not be changed.
import { signal } from "@preact/signals";

export const editRecord = signal<(() => void) | null>(null);
