// A record that is made while another one is filled in: asked for by a picker, made in a dialog of its own.
import { signal } from "@preact/signals";
import type { Model, Row } from "../api";

export interface Creating {
  model: Model;
  /** What was typed, to begin with. */
  name: string;
  onMade: (row: Row) => void;
}

export const creating = signal<Creating | null>(null);
