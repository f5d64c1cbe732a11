// A text from another author: invisible characters are marked, and its writing direction is isolated.
import { splitInvisible } from "../invisible_characters";

export function UntrustedText({ text }: { text: string }) {
  return (
    <bdi>
      {splitInvisible(text).map((part, index) =>
        part.isCode ? (
          <mark key={index} class="code-point">
            {part.text}
          </mark>
        ) : (
          part.text
        ),
      )}
    </bdi>
  );
}
