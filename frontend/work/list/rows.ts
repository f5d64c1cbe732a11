// The rows of a list of any length: fetched page by page where one looks, given up where one has left, counted aside.
import { signal } from "@preact/signals";
import { Problem } from "../../shared/problem";
import { type Model, type Row, run } from "../api";
import { may } from "../models";

export const PAGE = 100;
const MOST_PAGES = 60;
const LONG = 10_000;
/** Beyond, adding up would take the service from who jumps in the list. */
const MOST_SUMMED = 100_000;
const MOST_SUMS = 10;

export class Rows {
  /** Counts up with every change. */
  readonly version = signal(0);
  /** How many rows there are; null until the count is there, for which nothing waits. */
  readonly total = signal<number | null>(null);
  /** The sums of the amounts over all rows, by field, where the API adds them up. */
  readonly sums = signal<Readonly<Record<string, { sum: number | null; count: number }>>>({});
  readonly problem = signal<Problem | null>(null);
  private readonly pages = new Map<number, Row[]>();
  private readonly asked = new Map<number, AbortController>();
  private readonly counting = new AbortController();
  private end: number | null = null;

  constructor(
    private readonly model: Model,
    private readonly input: object,
  ) {}

  /** How many rows are known to be there, and one more page where there may be more. */
  get extent(): number {
    const seen = Math.max(0, ...[...this.pages.keys()].map((page) => (page + 1) * PAGE));
    return this.total.value ?? this.end ?? seen + PAGE;
  }

  at(index: number): Row | undefined {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** Have the rows from `first` to `last`; what is still on its way elsewhere is called off. */
  want(first: number, last: number): void {
    const from = Math.floor(Math.max(0, first) / PAGE);
    const to = Math.floor(Math.max(0, last) / PAGE);
    for (const [page, controller] of this.asked) {
      if (page < from - 1 || page > to + 1) {
        controller.abort();
        this.asked.delete(page);
      }
    }
    for (let page = from; page <= to; page++) {
      if (!this.pages.has(page) && !this.asked.has(page) && (this.end === null || page * PAGE < this.end)) {
        void this.fetch(page);
      }
    }
  }

  private async fetch(page: number): Promise<void> {
    const controller = new AbortController();
    this.asked.set(page, controller);
    try {
      this.keep(page, await this.read({ ...this.input, limit: PAGE, offset: page * PAGE }, controller.signal));
      this.problem.value = null;
    } catch (error) {
      if (!controller.signal.aborted) {
        this.problem.value = Problem.from(error);
      }
    } finally {
      if (this.asked.get(page) === controller) {
        this.asked.delete(page);
      }
    }
  }

  private keep(page: number, rows: Row[]): void {
    const isFirst = this.pages.size === 0;
    this.pages.set(page, rows);
    if (rows.length < PAGE && (rows.length > 0 || page === 0)) {
      this.end = page * PAGE + rows.length;
    }
    const oldest = this.pages.keys().next().value;
    if (this.pages.size > MOST_PAGES && oldest !== undefined) {
      this.pages.delete(oldest);
    }
    this.version.value++;
    if (isFirst && this.end !== null && page === 0) {
      this.total.value = this.end;
    } else if (isFirst) {
      void this.count();
    }
  }

  /** The rows from `first` to `last`, also where nobody has looked yet.
   *  @throws Problem when they are not to be had. */
  async between(first: number, last: number): Promise<Row[]> {
    const known = Array.from({ length: last - first + 1 }, (_, place) => this.at(first + place));
    const whole = known.flatMap((each) => each ?? []);
    return whole.length === known.length ? whole : this.read({ ...this.input, limit: last - first + 1, offset: first });
  }

  private async read(input: object, signal?: AbortSignal): Promise<Row[]> {
    return may(this.model, "list")
      ? (await run<Row[]>(this.model.name, "list", input, signal)).value
      : (await run<{ rows: Row[] }>(this.model.name, "search", input, signal)).value.rows;
  }

  /** Only after the first page is there: counting may take longer than looking. */
  private async count(): Promise<void> {
    if (!may(this.model, "search")) {
      return;
    }
    const signal = this.counting.signal;
    const found = await run<{ total: number }>(this.model.name, "search", { ...this.input, limit: 1 }, signal).catch(() => null);
    this.total.value = found?.value.total ?? null;
    if (found && found.value.total <= MOST_SUMMED) {
      await this.sum(signal);
    }
    if (found && found.value.total > LONG && may(this.model, "list")) {
      // Whoever jumps finds the way known: the API remembers the places it has passed.
      const last = { ...this.input, limit: 1, offset: found.value.total - 1 };
      await run(this.model.name, "list", last, signal).catch(() => null);
    }
  }

  /** The sums of the amounts over the whole result. A service of an earlier version answers none. */
  private async sum(signal: AbortSignal): Promise<void> {
    const fields = this.model.fields.filter((each) => each.kind === "money" && !each.masked).map((each) => each.name);
    if (fields.length === 0 || !this.model.command_details) {
      return;
    }
    const asked = { ...this.input, limit: 1, sums: fields.slice(0, MOST_SUMS) };
    type Sums = Record<string, { sum: number | null; count: number }>;
    const found = await run<{ sums: Sums }>(this.model.name, "search", asked, signal).catch(() => null);
    this.sums.value = found?.value.sums ?? {};
  }

  /** Show a record that has changed in its place. */
  put(row: Row): void {
    for (const rows of this.pages.values()) {
      const at = rows.findIndex((each) => each.id === row.id);
      if (at >= 0) {
        rows[at] = row;
        this.version.value++;
      }
    }
  }

  /** Ask anew for what is looked at. */
  reload(): void {
    this.problem.value = null;
    this.pages.clear();
    this.end = null;
    this.total.value = null;
    this.version.value++;
  }

  close(): void {
    this.counting.abort();
    this.asked.forEach((each) => each.abort());
  }
}
