// Switches the search between words, which find products, and a question, which gets an answer.
import { translator } from "../shared/i18n";

const t = translator("store");

interface Props {
  current: "words" | "question";
  /** The typed text, which is kept. */
  text: string;
}

export function SearchMode({ current, text }: Props) {
  const search = text.trim() ? `?q=${encodeURIComponent(text.trim())}` : "";
  const modes = [
    ["words", "/browse"],
    ["question", "/questions"],
  ] as const;
  return (
    <nav class="segments" aria-label={t("search.mode")}>
      {modes.map(([name, address]) => (
        <a key={name} href={address + search} aria-current={name === current ? "page" : undefined}>
          {t(`search.mode.${name}`)}
        </a>
      ))}
    </nav>
  );
}
