// Maps the columns of a file to the fields of a model, and decodes the file.
import type { Field, Model } from "../api";
import { fieldOf, workflowField } from "../models";
import { translator } from "../../shared/i18n";

const t = translator("import");

/** For each column: the field's name, "name:amount" for money written in decimals, or "" to leave it out. */
export type Mapping = readonly string[];

/** The fields that a file may have. A restore includes read-only fields and states. */
export function importFields(model: Model, restores: boolean): Field[] {
  const state = workflowField(model)?.name;
  return model.fields.filter((field) => field.kind !== "structure" && (restores || (!field.readonly && field.name !== state)));
}

export function fieldOptions(model: Model, restores: boolean): (readonly [string, string])[] {
  const idTarget = restores ? [["id", t("id")] as const] : [];
  return [
    ...idTarget,
    ...importFields(model, restores).flatMap((importField) =>
      importField.kind === "money"
        ? [
            [`${importField.name}:amount`, t("amount", { label: importField.label })] as const,
            [importField.name, t("minor", { label: importField.label })] as const,
          ]
        : [[importField.name, importField.label] as const],
    ),
  ];
}

/** The API's error for a row, with labels instead of field names. */
export function withLabels(model: Model, error: string): string {
  return error.replace(new RegExp(`\\b${model.name}\\.(\\w+)`, "g"), (path, name: string) => fieldOf(model, name)?.label ?? path);
}

/** Decode a file as UTF-8 or UTF-16, or else in the encoding of spreadsheets on Windows. */
export async function readCsvFile(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0);
  if (mark === 0xfffe || mark === 0xfeff) {
    return new TextDecoder(mark === 0xfffe ? "utf-16le" : "utf-16be").decode(bytes);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
