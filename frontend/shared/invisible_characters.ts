// Shows invisible characters, and those that change the direction of text, as code points.

// Control and format characters (bidirectional marks and tags among them), half surrogates, private use, line and
// paragraph separators, and blank letters. Tabs and newlines stay.
const INVISIBLE = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\u{e0100}-\u{e01ef}]/u;
const EACH_INVISIBLE = new RegExp(INVISIBLE.source, "gu");
export interface Piece {
  text: string;
  /** Whether the text is the code of an invisible character. */
  isCode: boolean;
}

/** Whether the character joins parts of an emoji, or letters of a script that needs joiners (not Latin). */
function isJoiner(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return (code === 0x200c || code === 0x200d) && isJoined(text.charCodeAt(index - 1)) && isJoined(text.charCodeAt(index + 1));
}

function isJoined(code: number): boolean {
  return code > 0x2ff && !(code >= 0x2000 && code <= 0x206f);
}

/** Split the text into pieces, with codes in place of the invisible characters. */
export function splitInvisible(text: string): Piece[] {
  if (!INVISIBLE.test(text)) {
    return [{ text, isCode: false }];
  }
  const pieces: Piece[] = [];
  let start = 0;
  for (const match of text.matchAll(EACH_INVISIBLE)) {
    if (isJoiner(text, match.index)) {
      continue;
    }
    if (match.index > start) {
      pieces.push({ text: text.slice(start, match.index), isCode: false });
    }
    const code = (match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    pieces.push({ text: `U+${code}`, isCode: true });
    start = match.index + match[0].length;
  }
  return start < text.length ? [...pieces, { text: text.slice(start), isCode: false }] : pieces;
}

/** The text with the codes in angle brackets, for places that can show only text. */
export function escapeInvisible(text: string): string {
  return splitInvisible(text).map((part) => (part.isCode ? `⟨${part.text}⟩` : part.text)).join("");
}

/** The number of invisible characters in the text. */
export function countInvisible(text: string): number {
  return splitInvisible(text).filter((part) => part.isCode).length;
}
