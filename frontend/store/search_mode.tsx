// Switches the search between words, which the list of products is searched for, and a question, which is answered.
import { translator } from "../shared/i18n";

const t = translator("store");

interface Props {
  current: "words" | "question";
  /** What is typed goes along. */
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
