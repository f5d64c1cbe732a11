// Saves what a list shows as CSV: its records in its order, streamed by the API, cut to its columns.
import { tell } from "../../shared/news";
import { Problem } from "../../shared/problem";
import { call, type Field, type Meta, type Model } from "../api";

/** The records as lines of JSON, which the columns are taken from: so what is saved is what is shown. */
export async function exported(_: Meta, model: Model, input: object, columns: readonly Field[]): Promise<void> {
  try {
    const headers = { Accept: "application/x-ndjson" };
    const answer = await call("POST", `/api/${model.name}/export`, { body: input, headers });
    const rows = (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line) as Record<string, unknown>);
    const lines = rows.map((row) => columns.map((field) => cell(row[field.name])).join(","));
    const text = [columns.map((field) => cell(field.name)).join(","), ...lines, ""].join("\r\n");
    offer(`${model.name}.csv`, new Blob([text], { type: "text/csv" }));
  } catch (error) {
    tell((Problem.from(error)).message);
  }
}

/** What a spreadsheet would run as a formula begins with an apostrophe instead (CWE-1236), which an import takes away;
 *  so text that is like it has one more. */
function cell(value: unknown): string {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  const tame = typeof value === "string" && /^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
}

function offer(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
