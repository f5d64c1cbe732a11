// Compares two texts, in time linear in their length.

export interface DiffPart {
  text: string;
  isChanged: boolean;
}

/** The maximum number of comparisons of pieces. Larger differences are shown as one change. */
const MOST_COMPARED = 250_000;

/** Split both texts into changed and unchanged parts. Unchanged parts are equal in both. */
export function diffTexts(before: string, after: string): { before: DiffPart[]; after: DiffPart[] } {
  const head = commonHead(before, after);
  const tail = commonTail(before.slice(head), after.slice(head));
  const old = before.slice(head, before.length - tail);
  const young = after.slice(head, after.length - tail);
  const middle = compared(old, young);
  const first: DiffPart = { text: before.slice(0, head), isChanged: false };
  const last: DiffPart = { text: before.slice(before.length - tail), isChanged: false };
  return { before: joined([first, ...middle.before, last]), after: joined([first, ...middle.after, last]) };
}

function commonHead(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let at = 0;
  while (at < most && one[at] === other[at]) at += 1;
  // Do not split a surrogate pair.
  return at > 0 && /[\ud800-\udbff]/.test(one[at - 1] ?? "") ? at - 1 : at;
}

function commonTail(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let count = 0;
  while (count < most && one[one.length - 1 - count] === other[other.length - 1 - count]) count += 1;
  return count > 0 && /[\udc00-\udfff]/.test(one[one.length - count] ?? "") ? count - 1 : count;
}

function compared(before: string, after: string): { before: DiffPart[]; after: DiffPart[] } {
  const [ones, others] = [split(before), split(after)];
  if (!ones.length || !others.length || ones.length * others.length > MOST_COMPARED) {
    return { before: [{ text: before, isChanged: true }], after: [{ text: after, isChanged: true }] };
  }
  const kept = common(ones, others);
  return {
    before: ones.map((text, at) => ({ text, isChanged: !kept.ones.has(at) })),
    after: others.map((text, at) => ({ text, isChanged: !kept.others.has(at) })),
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
      const both = (lengths[(one + 1) * width + other + 1] ?? 0) + 1;
      lengths[one * width + other] = ones[one] === others[other] ? both : Math.max(below, right);
    }
  }
  const found = { ones: new Set<number>(), others: new Set<number>() };
  for (let one = 0, other = 0; one < ones.length && other < others.length; ) {
    if (ones[one] === others[other]) {
      found.ones.add(one);
      found.others.add(other);
      one += 1;
      other += 1;
    } else if ((lengths[(one + 1) * width + other] ?? 0) >= (lengths[one * width + other + 1] ?? 0)) {
      one += 1;
    } else {
      other += 1;
    }
  }
  return found;
}

function joined(parts: readonly DiffPart[]): DiffPart[] {
  const found: DiffPart[] = [];
  for (const part of parts) {
    const last = found.at(-1);
    if (last && last.isChanged === part.isChanged) {
      last.text += part.text;
    } else if (part.text) {
      found.push({ ...part });
    }
  }
  return found;
}
