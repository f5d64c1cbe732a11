// Compares two texts, in time linear in their length.

export interface DiffPart {
  text: string;
  isChanged: boolean;
}

/** The maximum number of comparisons of pieces. Larger differences are shown as one change. */
const MAX_COMPARISONS = 250_000;

/** Split both texts into changed and unchanged parts. Unchanged parts are equal in both. */
export function diffTexts(before: string, after: string): { before: DiffPart[]; after: DiffPart[] } {
  const headLength = commonHead(before, after);
  const tailLength = commonTail(before.slice(headLength), after.slice(headLength));
  const changedBefore = before.slice(headLength, before.length - tailLength);
  const changedAfter = after.slice(headLength, after.length - tailLength);
  const middle = compareTexts(changedBefore, changedAfter);
  const headPart: DiffPart = { text: before.slice(0, headLength), isChanged: false };
  const tailPart: DiffPart = { text: before.slice(before.length - tailLength), isChanged: false };
  return { before: joinParts([headPart, ...middle.before, tailPart]), after: joinParts([headPart, ...middle.after, tailPart]) };
}

function commonHead(text: string, otherText: string): number {
  const maxLength = Math.min(text.length, otherText.length);
  let length = 0;
  while (length < maxLength && text[length] === otherText[length]) length += 1;
  // Do not split a surrogate pair.
  return length > 0 && /[\ud800-\udbff]/.test(text[length - 1] ?? "") ? length - 1 : length;
}

function commonTail(text: string, otherText: string): number {
  const maxLength = Math.min(text.length, otherText.length);
  let count = 0;
  while (count < maxLength && text[text.length - 1 - count] === otherText[otherText.length - 1 - count]) count += 1;
  return count > 0 && /[\udc00-\udfff]/.test(text[text.length - count] ?? "") ? count - 1 : count;
}

function compareTexts(before: string, after: string): { before: DiffPart[]; after: DiffPart[] } {
  const [beforePieces, afterPieces] = [splitWords(before), splitWords(after)];
  if (!beforePieces.length || !afterPieces.length || beforePieces.length * afterPieces.length > MAX_COMPARISONS) {
    return { before: [{ text: before, isChanged: true }], after: [{ text: after, isChanged: true }] };
  }
  const commonIndexes = common(beforePieces, afterPieces);
  return {
    before: beforePieces.map((text, index) => ({ text, isChanged: !commonIndexes.ones.has(index) })),
    after: afterPieces.map((text, index) => ({ text, isChanged: !commonIndexes.others.has(index) })),
  };
}

/** Split into lines, or into words if there are few lines. */
function splitWords(text: string): string[] {
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  return lines.length > 3 ? lines : (text.match(/\s+|\S+/g) ?? []);
}

/** The indexes of a longest common subsequence in both lists. */
function common(ones: readonly string[], others: readonly string[]): { ones: Set<number>; others: Set<number> } {
  const width = others.length + 1;
  const lengths = new Uint32Array((ones.length + 1) * width);
  for (let wordIndex = ones.length - 1; wordIndex >= 0; wordIndex -= 1) {
    for (let otherIndex = others.length - 1; otherIndex >= 0; otherIndex -= 1) {
      const lengthBelow = lengths[(wordIndex + 1) * width + otherIndex] ?? 0;
      const right = lengths[wordIndex * width + otherIndex + 1] ?? 0;
      const diagonal = (lengths[(wordIndex + 1) * width + otherIndex + 1] ?? 0) + 1;
      lengths[wordIndex * width + otherIndex] = ones[wordIndex] === others[otherIndex] ? diagonal : Math.max(lengthBelow, right);
    }
  }
  const indexes = { ones: new Set<number>(), others: new Set<number>() };
  for (let wordIndex = 0, otherIndex = 0; wordIndex < ones.length && otherIndex < others.length; ) {
    if (ones[wordIndex] === others[otherIndex]) {
      indexes.ones.add(wordIndex);
      indexes.others.add(otherIndex);
      wordIndex += 1;
      otherIndex += 1;
    } else if ((lengths[(wordIndex + 1) * width + otherIndex] ?? 0) >= (lengths[wordIndex * width + otherIndex + 1] ?? 0)) {
      wordIndex += 1;
    } else {
      otherIndex += 1;
    }
  }
  return indexes;
}

function joinParts(parts: readonly DiffPart[]): DiffPart[] {
  const joinedParts: DiffPart[] = [];
  for (const part of parts) {
    const lastPart = joinedParts.at(-1);
    if (lastPart && lastPart.isChanged === part.isChanged) {
      lastPart.text += part.text;
    } else if (part.text) {
      joinedParts.push({ ...part });
    }
  }
  return joinedParts;
}
