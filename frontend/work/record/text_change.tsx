// A text before or after a change. Long unchanged parts are folded.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { countInvisible } from "../../shared/invisible_characters";
import { number, translator } from "../../shared/i18n";
import type { DiffPart } from "./text_diff";

const t = translator("record");

/** The maximum length of an unfolded part, and the number of characters shown at the ends of a folded one. */
const UNCHANGED_LENGTHS = { whole: 200, end: 60 };
const CHANGED_LENGTHS = { whole: 2_000, end: 700 };

export function TextChange({ parts }: { parts: readonly DiffPart[] }) {
  return (
    <bdi class="longtext">
      {parts.map((part, index) =>
        part.isChanged && parts.length > 1 ? (
          <mark key={index} class="changed">
            <FoldedText text={part.text} isChanged />
          </mark>
        ) : (
          <FoldedText key={index} text={part.text} isChanged={part.isChanged} />
        ),
      )}
    </bdi>
  );
}

function FoldedText({ text, isChanged }: { text: string; isChanged: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const { whole: maxUnfolded, end: endLength } = isChanged ? CHANGED_LENGTHS : UNCHANGED_LENGTHS;
  if (isOpen || text.length <= maxUnfolded) {
    return <UntrustedText text={text} />;
  }
  const [foldStart, foldEnd] = [atCharacter(text, endLength), atCharacter(text, text.length - endLength)];
  const hiddenText = text.slice(foldStart, foldEnd);
  const invisibleCount = countInvisible(hiddenText);
  const label = t(isChanged ? "fold.changed" : "fold", { n: number(hiddenText.length) });
  return (
    <>
      <UntrustedText text={text.slice(0, foldStart)} />{" "}
      <Button tight variant="plain" aria-expanded={false} onClick={() => setOpen(true)}>
        {invisibleCount ? `${label}, ${t("fold.unseen", { n: number(invisibleCount) })}` : label}
      </Button>{" "}
      <UntrustedText text={text.slice(foldEnd)} />
    </>
  );
}

/** The offset, or the one before it if it is inside a surrogate pair. */
function atCharacter(text: string, offset: number): number {
  return /[\udc00-\udfff]/.test(text[offset] ?? "") ? offset - 1 : offset;
}
