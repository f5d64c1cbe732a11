// Saves a list as CSV, with its records, order and columns. The API writes the CSV.
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { call, type Field, type Model } from "../api";
import { notation, separator } from "../values/csv_notation";

// The byte order mark, without which spreadsheets assume another encoding.
const MARK = "\ufeff";

/** Export for people: labels, decimal amounts, and names of records. */
export async function exportCsv(model: Model, input: object, columns: readonly Field[]): Promise<void> {
  const fields = columns.map((field) => field.name);
  await saved(model, { ...input, fields, form: "shown", separator, ...notation }, MARK);
}

/** Export for programs: all fields by name, ids, amounts in minor units. */
export async function exportRawCsv(model: Model, input: object): Promise<void> {
  await saved(model, input, "");
}

async function saved(model: Model, body: object, mark: string): Promise<void> {
  try {
    const answer = await call("POST", `/api/${model.name}/export`, { body, headers: { Accept: "text/csv" } });
    offer(`${model.name}.csv`, new Blob([mark, await answer.text()], { type: "text/csv" }));
  } catch (error) {
    showToast((Problem.from(error)).message);
  }
}

function offer(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
