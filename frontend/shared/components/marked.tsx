// A text from another author: unseen characters are marked, and its writing direction is isolated.
import { pieces } from "../visible";

export function Marked({ text }: { text: string }) {
  return (
    <bdi>
      {pieces(text).map((each, place) =>
        each.isCode ? (
          <mark key={place} class="code-point">
            {each.text}
          </mark>
        ) : (
          each.text
        ),
      )}
    </bdi>
  );
}
