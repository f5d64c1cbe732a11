// A text before or after a change. Long unchanged parts are folded.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { countInvisible } from "../../shared/invisible_characters";
import { number, translator } from "../../shared/i18n";
import type { DiffPart } from "./text_diff";

const t = translator("record");

/** The maximum length of an unfolded part, and the number of characters shown at the ends of a folded one. */
const SAME = { whole: 200, end: 60 };
const CHANGED = { whole: 2_000, end: 700 };

export function TextChange({ parts }: { parts: readonly DiffPart[] }) {
  return (
    <bdi class="longtext">
      {parts.map((part, place) =>
        part.isChanged && parts.length > 1 ? (
          <mark key={place} class="changed">
            <Folded text={part.text} isChanged />
          </mark>
        ) : (
          <Folded key={place} text={part.text} isChanged={part.isChanged} />
        ),
      )}
    </bdi>
  );
}

function Folded({ text, isChanged }: { text: string; isChanged: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const { whole, end } = isChanged ? CHANGED : SAME;
  if (isOpen || text.length <= whole) {
    return <UntrustedText text={text} />;
  }
  const [from, to] = [atCharacter(text, end), atCharacter(text, text.length - end)];
  const hidden = text.slice(from, to);
  const count = countInvisible(hidden);
  const label = t(isChanged ? "fold.changed" : "fold", { n: number(hidden.length) });
  return (
    <>
      <UntrustedText text={text.slice(0, from)} />{" "}
      <Button tight look="plain" aria-expanded={false} onClick={() => setOpen(true)}>
        {count ? `${label}, ${t("fold.unseen", { n: number(count) })}` : label}
      </Button>{" "}
      <UntrustedText text={text.slice(to)} />
    </>
  );
}

/** The offset, or the one before it if it is inside a surrogate pair. */
function atCharacter(text: string, at: number): number {
  return /[\udc00-\udfff]/.test(text[at] ?? "") ? at - 1 : at;
}
