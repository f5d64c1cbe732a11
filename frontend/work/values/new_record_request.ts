// The request of a record picker to create a record in a dialog, while another form is being filled in.
import { signal } from "@preact/signals";
import type { Model, Row } from "../api";

export interface NewRecordRequest {
  model: Model;
  /** The typed text, as the initial title. */
  name: string;
  onMade: (row: Row) => void;
}

export const newRecordRequest = signal<NewRecordRequest | null>(null);
