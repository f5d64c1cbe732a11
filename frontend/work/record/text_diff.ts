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
  const first: DiffPart = { text: before.slice(0, headLength), isChanged: false };
  const last: DiffPart = { text: before.slice(before.length - tailLength), isChanged: false };
  return { before: joinParts([first, ...middle.before, last]), after: joinParts([first, ...middle.after, last]) };
}

function commonHead(one: string, other: string): number {
  const maxLength = Math.min(one.length, other.length);
  let length = 0;
  while (length < maxLength && one[length] === other[length]) length += 1;
  // Do not split a surrogate pair.
  return length > 0 && /[\ud800-\udbff]/.test(one[length - 1] ?? "") ? length - 1 : length;
}

function commonTail(one: string, other: string): number {
  const maxLength = Math.min(one.length, other.length);
  let count = 0;
  while (count < maxLength && one[one.length - 1 - count] === other[other.length - 1 - count]) count += 1;
  return count > 0 && /[\udc00-\udfff]/.test(one[one.length - count] ?? "") ? count - 1 : count;
}

function compareTexts(before: string, after: string): { before: DiffPart[]; after: DiffPart[] } {
  const [beforePieces, afterPieces] = [split(before), split(after)];
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
function split(text: string): string[] {
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  return lines.length > 3 ? lines : (text.match(/\s+|\S+/g) ?? []);
}

/** The indexes of a longest common subsequence in both lists. */
function common(ones: readonly string[], others: readonly string[]): { ones: Set<number>; others: Set<number> } {
  const width = others.length + 1;
  const lengths = new Uint32Array((ones.length + 1) * width);
  for (let one = ones.length - 1; one >= 0; one -= 1) {
    for (let other = others.length - 1; other >= 0; other -= 1) {
      const below = lengths[(one + 1) * width + other] ?? 0;
      const right = lengths[one * width + other + 1] ?? 0;
      const diagonal = (lengths[(one + 1) * width + other + 1] ?? 0) + 1;
      lengths[one * width + other] = ones[one] === others[other] ? diagonal : Math.max(below, right);
    }
  }
  const indexes = { ones: new Set<number>(), others: new Set<number>() };
  for (let one = 0, other = 0; one < ones.length && other < others.length; ) {
    if (ones[one] === others[other]) {
      indexes.ones.add(one);
      indexes.others.add(other);
      one += 1;
      other += 1;
    } else if ((lengths[(one + 1) * width + other] ?? 0) >= (lengths[one * width + other + 1] ?? 0)) {
      one += 1;
    } else {
      other += 1;
    }
  }
  return indexes;
}

function joinParts(parts: readonly DiffPart[]): DiffPart[] {
  const joinedParts: DiffPart[] = [];
  for (const part of parts) {
    const last = joinedParts.at(-1);
    if (last && last.isChanged === part.isChanged) {
      last.text += part.text;
    } else if (part.text) {
      joinedParts.push({ ...part });
    }
  }
  return joinedParts;
}
