// How CSV files write amounts and dates: by the language of the page, unless the person chooses otherwise.
import { language } from "../../shared/i18n";

export type Decimal = "." | ",";
export type DateOrder = "ymd" | "dmy" | "mdy";

export interface Notation {
  decimal: Decimal;
  date_order: DateOrder;
}

export const notation: Notation =
  language === "de" ? { decimal: ",", date_order: "dmy" } : { decimal: ".", date_order: "ymd" };

/** What a spreadsheet in the page's language separates cells by: a comma, unless amounts have one. */
export const separator = notation.decimal === "," ? ";" : ",";
