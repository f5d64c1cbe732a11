// The notation of amounts and dates in CSV files: that of the page's language, unless the person chooses another.
import { language } from "../../shared/i18n";

export type Decimal = "." | ",";
export type DateOrder = "ymd" | "dmy" | "mdy";

export interface Notation {
  decimal: Decimal;
  date_order: DateOrder;
}

export const notation: Notation =
  language === "de" ? { decimal: ",", date_order: "dmy" } : { decimal: ".", date_order: "ymd" };

/** The separator of cells in spreadsheets of this language: a comma, unless it is the decimal separator. */
export const separator = notation.decimal === "," ? ";" : ",";
