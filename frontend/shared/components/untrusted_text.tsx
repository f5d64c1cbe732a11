// A text from another author: unseen characters are marked, and its writing direction is isolated.
import { splitInvisible } from "../invisible_characters";

export function UntrustedText({ text }: { text: string }) {
  return (
    <bdi>
      {splitInvisible(text).map((each, index) =>
        each.isCode ? (
          <mark key={index} class="code-point">
            {each.text}
          </mark>
        ) : (
          each.text
        ),
      )}
    </bdi>
  );
}
