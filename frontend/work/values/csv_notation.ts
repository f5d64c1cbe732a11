// The default notation of amounts and dates in CSV files: the notation of the page's language.
import { language } from "../../shared/i18n";

export type Decimal = "." | ",";
export type DateOrder = "ymd" | "dmy" | "mdy";

export interface Notation {
  decimal: Decimal;
  date_order: DateOrder;
}

export const defaultNotation: Notation =
  language === "de" ? { decimal: ",", date_order: "dmy" } : { decimal: ".", date_order: "ymd" };

/** The default separator of cells: a comma, or a semicolon if the comma is the decimal separator. */
export const defaultSeparator = defaultNotation.decimal === "," ? ";" : ",";
