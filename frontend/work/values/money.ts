// Amounts of money: text in the language of the page, and whole minor units, never floats.
import { language } from "../../shared/i18n";

const DIGITS = 2;
const numberParts = new Intl.NumberFormat(language, { minimumFractionDigits: DIGITS }).formatToParts(-12345.6);
const POINT = numberParts.find((numberPart) => numberPart.type === "decimal")?.value ?? ".";
const GROUP = numberParts.find((numberPart) => numberPart.type === "group")?.value ?? ",";

function plainAmount(minor: number): string {
  const digits = String(Math.abs(minor)).padStart(DIGITS + 1, "0");
  return `${minor < 0 ? "-" : ""}${digits.slice(0, -DIGITS)}.${digits.slice(-DIGITS)}`;
}

/** Format an amount: 1,234.50. */
export function formatMoney(minor: number): string {
  const format = new Intl.NumberFormat(language, { minimumFractionDigits: DIGITS });
  return format.format(plainAmount(minor) as Intl.StringNumericLiteral);
}

/** Format an amount with its currency, if it is known: €1,234.50. */
export function formatAmount(minor: number, currency: string | null | undefined): string {
  return currency ? amountFormat(currency, { minimumFractionDigits: DIGITS }).format(plainAmount(minor) as Intl.StringNumericLiteral) : formatMoney(minor);
}

/** Format an amount without minor units, for overviews: €1,235. */
export function formatWholeAmount(minor: number, currency: string | null | undefined): string {
  const wholeUnits = Math.round(minor / 10 ** DIGITS);
  return currency ? amountFormat(currency, { maximumFractionDigits: 0 }).format(wholeUnits) : new Intl.NumberFormat(language).format(wholeUnits);
}

/** A large amount in short: €1.24M. */
export function formatShortAmount(minor: number, currency: string | null | undefined): string {
  const shortFormat = { notation: "compact", minimumFractionDigits: 0, maximumFractionDigits: DIGITS } as const;
  return (currency ? amountFormat(currency, shortFormat) : new Intl.NumberFormat(language, shortFormat)).format(minor / 10 ** DIGITS);
}

/** The symbol of a currency: €. */
export function currencySymbol(currency: string): string {
  return amountFormat(currency, {}).formatToParts(0).find((part) => part.type === "currency")?.value ?? currency;
}

function amountFormat(currency: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  return new Intl.NumberFormat(language, { style: "currency", currency, currencyDisplay: "narrowSymbol", ...options });
}

/** The text of an amount for a form: 1234.50. */
export function moneyToText(minor: number): string {
  return plainAmount(minor).replace(".", POINT);
}

/** Parse typed text to minor units. Null if it is not an amount, has fractions of a minor unit, or has groups of other than
 *  three digits, which suggests another language's notation. */
export function parseMoney(text: string): number | null {
  const bareText = text.trim().replace(/[\s\u00a0\u202f']/g, "").replace("\u2212", "-");
  const wholePattern = `\\d+|\\d{1,3}(?:\\${GROUP}\\d{3})+`;
  const match = new RegExp(`^(-?)(${wholePattern})(?:\\${POINT}(\\d{0,${DIGITS}}))?$`).exec(bareText);
  if (!match) {
    return null;
  }
  const value = Number(`${match[1]}${match[2]?.replaceAll(GROUP, "")}${(match[3] ?? "").padEnd(DIGITS, "0")}`);
  return Number.isSafeInteger(value) ? value : null;
}
