// The first letter of a publisher's name on its own colour, used instead of a picture.

const COLOURS = 6;

interface Props {
  slug: string;
  name: string;
  size?: "l" | "xl";
}

/** Hidden from screen readers, because the name is beside it. */
export function Monogram({ slug, name, size = "l" }: Props) {
  let hash = 0;
  for (const letter of slug) {
    hash = (hash * 131 + (letter.codePointAt(0) ?? 0)) >>> 0;
  }
  const letter = Array.from(name.trim())[0] ?? "";
  return <span class={`monogram ${size} m${(hash >>> 8) % COLOURS}`} data-letters={letter.toLocaleUpperCase()} aria-hidden="true" />;
}
