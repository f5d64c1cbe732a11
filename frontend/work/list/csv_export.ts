// Exports a list as a CSV file. The API writes the CSV; this file requests it and saves it.
import { saveFile } from "../../shared/save_file";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { call, type Field, type Model } from "../api";
import { defaultNotation, defaultSeparator } from "../values/csv_notation";

// Spreadsheet programs recognise UTF-8 only if the file starts with this byte order mark.
const BYTE_ORDER_MARK = "\ufeff";

/** Export for people: the shown columns, with labels, decimal amounts and names of records. */
export async function exportCsv(model: Model, input: object, columns: readonly Field[]): Promise<void> {
  const fields = columns.map((field) => field.name);
  await download(model, { ...input, fields, form: "shown", separator: defaultSeparator, ...defaultNotation }, BYTE_ORDER_MARK);
}

/** Export for programs: all fields, with their internal names, ids of records, and amounts in minor units. */
export async function exportRawCsv(model: Model, input: object): Promise<void> {
  await download(model, input, "");
}

async function download(model: Model, body: object, prefix: string): Promise<void> {
  try {
    const response = await call("POST", `/api/${model.name}/export`, { body, headers: { Accept: "text/csv" } });
    saveFile(`${model.name}.csv`, new Blob([prefix, await response.text()], { type: "text/csv" }));
  } catch (error) {
    showToast((Problem.from(error)).message);
  }
}
