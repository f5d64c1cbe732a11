// A text that somebody else wrote, as it is: what is not seen is marked, and its direction is its own.
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
