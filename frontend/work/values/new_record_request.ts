// The request of a record picker to create a record in a dialog while another record is filled in.
import { signal } from "@preact/signals";
import type { Model, Row } from "../api";

export interface NewRecordRequest {
  model: Model;
  /** What was typed, to begin with. */
  name: string;
  onMade: (row: Row) => void;
}

export const newRecordRequest = signal<NewRecordRequest | null>(null);
