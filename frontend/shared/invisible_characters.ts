// Invisible characters, and those that change the direction of text: they are shown as their code points.

// Control and format characters (bidirectional marks and tags among them), half surrogates, private use, line and
// paragraph separators, and letters that look like nothing. A tab and a newline are what they are.
const UNSEEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\u{e0100}-\u{e01ef}]/u;
const EACH = new RegExp(UNSEEN.source, "gu");
export interface Piece {
  text: string;
  /** Whether it is the code of a character that is not seen. */
  isCode: boolean;
}

/** Whether it joins parts of an emoji or letters of a script that needs it: of Latin letters and spaces it says nothing. */
function isJoiner(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code === 0x200c || code === 0x200d) && isJoined(text.charCodeAt(at - 1)) && isJoined(text.charCodeAt(at + 1));
}

function isJoined(code: number): boolean {
  return code > 0x2ff && !(code >= 0x2000 && code <= 0x206f);
}

/** The text in pieces, with the codes of the characters that are not seen in their place. */
export function splitInvisible(text: string): Piece[] {
  if (!UNSEEN.test(text)) {
    return [{ text, isCode: false }];
  }
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(EACH)) {
    if (isJoiner(text, match.index)) {
      continue;
    }
    if (match.index > from) {
      found.push({ text: text.slice(from, match.index), isCode: false });
    }
    const code = (match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    found.push({ text: `U+${code}`, isCode: true });
    from = match.index + match[0].length;
  }
  return from < text.length ? [...found, { text: text.slice(from), isCode: false }] : found;
}

/** The text with those codes in angle brackets, where nothing but text can be. */
export function escapeInvisible(text: string): string {
  return splitInvisible(text).map((each) => (each.isCode ? `⟨${each.text}⟩` : each.text)).join("");
}

/** How many characters of the text are not seen. */
export function countInvisible(text: string): number {
  return splitInvisible(text).filter((each) => each.isCode).length;
}
