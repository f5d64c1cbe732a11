// The rows of a list of any length. Visible pages are loaded, other requests are aborted, and the total is counted later.
import { signal } from "@preact/signals";
import { Problem } from "../../shared/problem";
import { type Model, type Row, run } from "../api";
import { mayRun } from "../models";

export const PAGE_SIZE = 100;
const MAX_PAGES = 60;
const LONG_LIST_ROWS = 10_000;
/** Lists longer than this get no sums, because computing them would delay the requests for pages. */
const MAX_SUMMED_ROWS = 100_000;
const MAX_SUMS = 10;

export class Rows {
  /** Increases with every change. */
  readonly version = signal(0);
  /** The number of rows; null until the count has arrived. Nothing waits for it. */
  readonly total = signal<number | null>(null);
  /** The sums of amounts over all rows, by field, if the API computes them. */
  readonly sums = signal<Readonly<Record<string, { sum: number | null; count: number }>>>({});
  readonly problem = signal<Problem | null>(null);
  private readonly pages = new Map<number, Row[]>();
  private readonly requests = new Map<number, AbortController>();
  private readonly counting = new AbortController();
  private end: number | null = null;

  constructor(
    private readonly model: Model,
    private readonly input: object,
  ) {}

  /** The total if it is known. Until then, the end of the last loaded page plus one page. */
  get extent(): number {
    const loadedExtent = Math.max(0, ...[...this.pages.keys()].map((page) => (page + 1) * PAGE_SIZE));
    return this.total.value ?? this.end ?? loadedExtent + PAGE_SIZE;
  }

  at(index: number): Row | undefined {
    return this.pages.get(Math.floor(index / PAGE_SIZE))?.[index % PAGE_SIZE];
  }

  /** Load the rows from `firstRow` to `lastRow`, and abort requests for other rows. */
  loadVisible(firstRow: number, lastRow: number): void {
    const firstPage = Math.floor(Math.max(0, firstRow) / PAGE_SIZE);
    const lastPage = Math.floor(Math.max(0, lastRow) / PAGE_SIZE);
    for (const [page, controller] of this.requests) {
      if (page < firstPage - 1 || page > lastPage + 1) {
        controller.abort();
        this.requests.delete(page);
      }
    }
    for (let page = firstPage; page <= lastPage; page++) {
      if (!this.pages.has(page) && !this.requests.has(page) && (this.end === null || page * PAGE_SIZE < this.end)) {
        void this.fetch(page);
      }
    }
  }

  private async fetch(page: number): Promise<void> {
    const controller = new AbortController();
    this.requests.set(page, controller);
    try {
      this.storePage(page, await this.read({ ...this.input, limit: PAGE_SIZE, offset: page * PAGE_SIZE }, controller.signal));
      this.problem.value = null;
    } catch (error) {
      if (!controller.signal.aborted) {
        this.problem.value = Problem.from(error);
      }
    } finally {
      if (this.requests.get(page) === controller) {
        this.requests.delete(page);
      }
    }
  }

  private storePage(page: number, rows: Row[]): void {
    const isFirst = this.pages.size === 0;
    this.pages.set(page, rows);
    if (rows.length < PAGE_SIZE && (rows.length > 0 || page === 0)) {
      this.end = page * PAGE_SIZE + rows.length;
    }
    const oldestPage = this.pages.keys().next().value;
    if (this.pages.size > MAX_PAGES && oldestPage !== undefined) {
      this.pages.delete(oldestPage);
    }
    this.version.value++;
    if (isFirst && this.end !== null && page === 0) {
      this.total.value = this.end;
    } else if (isFirst) {
      void this.count();
    }
  }

  /** Return the rows from `firstRow` to `lastRow`; rows that are missing are loaded.
   *  @throws Problem if they cannot be loaded. */
  async load(firstRow: number, lastRow: number): Promise<Row[]> {
    const knownRows = Array.from({ length: lastRow - firstRow + 1 }, (_, offset) => this.at(firstRow + offset));
    const loadedRows = knownRows.flatMap((row) => row ?? []);
    return loadedRows.length === knownRows.length ? loadedRows : this.read({ ...this.input, limit: lastRow - firstRow + 1, offset: firstRow });
  }

  private async read(input: object, signal?: AbortSignal): Promise<Row[]> {
    return mayRun(this.model, "list")
      ? (await run<Row[]>(this.model.name, "list", input, signal)).value
      : (await run<{ rows: Row[] }>(this.model.name, "search", input, signal)).value.rows;
  }

  /** Count after the first page has arrived, because counting may take longer. */
  private async count(): Promise<void> {
    if (!mayRun(this.model, "search")) {
      return;
    }
    const signal = this.counting.signal;
    const response = await run<{ total: number }>(this.model.name, "search", { ...this.input, limit: 1 }, signal).catch(() => null);
    this.total.value = response?.value.total ?? null;
    if (response && response.value.total <= MAX_SUMMED_ROWS) {
      await this.loadSums(signal);
    }
    if (response && response.value.total > LONG_LIST_ROWS && mayRun(this.model, "list")) {
      // Read the last row, so that the API caches positions for later jumps.
      const lastRow = { ...this.input, limit: 1, offset: response.value.total - 1 };
      await run(this.model.name, "list", lastRow, signal).catch(() => null);
    }
  }

  /** Load the sums over the whole result. Earlier versions of the service do not send any. */
  private async loadSums(signal: AbortSignal): Promise<void> {
    const fields = this.model.fields.filter((field) => field.kind === "money" && !field.masked).map((field) => field.name);
    if (fields.length === 0 || !this.model.command_details) {
      return;
    }
    const sumInput = { ...this.input, limit: 1, sums: fields.slice(0, MAX_SUMS) };
    type Sums = Record<string, { sum: number | null; count: number }>;
    const response = await run<{ sums: Sums }>(this.model.name, "search", sumInput, signal).catch(() => null);
    this.sums.value = response?.value.sums ?? {};
  }

  /** Replace a changed record in the list. */
  put(row: Row): void {
    for (const rows of this.pages.values()) {
      const index = rows.findIndex((other) => other.id === row.id);
      if (index >= 0) {
        rows[index] = row;
        this.version.value++;
      }
    }
  }

  /** Forget all rows. The next `loadVisible()` requests the visible ones again. */
  reload(): void {
    this.problem.value = null;
    this.pages.clear();
    this.end = null;
    this.total.value = null;
    this.version.value++;
  }

  close(): void {
    this.counting.abort();
    this.requests.forEach((request) => request.abort());
  }
}
