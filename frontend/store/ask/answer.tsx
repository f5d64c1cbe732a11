// An answer: its status, the unused words of the question, its text, and its products.
import { Chip, type Tone } from "../../shared/components/chip";
import { plural, number, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { Card } from "../card";
import { PLATFORMS, type Platform } from "../platform";

const tStore = translator("store");
const t = translator("ask");

/** The JSON of POST /ask. */
export type AskAnswer = Schemas["AskAnswer"];

const BY_MODEL = 0.6;
const BY_CORRECTION = 0.8;
const MAX_VERSIONS = 5;
const TONES: Readonly<Record<AskAnswer["status"], Tone | undefined>> = { answered: undefined, partial: "warn", refused: "warn" };

export function Reply({ answer, question }: { answer: AskAnswer; question: string }) {
  const { status, unused, confidence } = answer;
  // The suggestions are shown as buttons, so remove them from the text.
  const text = status === "refused" && answer.suggestions.length ? answer.answer.replace(/ You could ask: .*$/s, "") : answer.answer;
  const marks = [confidence === BY_MODEL && t("by.model"), confidence === BY_CORRECTION && t("by.correction")].filter(Boolean);
  return (
    <div class={`answer ${status}`}>
      {(status !== "answered" || marks.length > 0) && (
        <div class="row">
          {status !== "answered" && <Chip tone={TONES[status]}>{t(`status.${status}`)}</Chip>}
          {marks.map((mark) => (
            <Chip key={mark}>{mark}</Chip>
          ))}
        </div>
      )}
      {unused.length > 0 && <Question text={question} unused={unused} />}
      {/* The catalog answers in English, whatever the page speaks. */}
      <p class="text" lang="en">
        {text}
      </p>
    </div>
  );
}

/** The question, with the words that the answer does not use struck out. */
function Question({ text, unused }: { text: string; unused: readonly string[] }) {
  return (
    <p class="asked" lang="en">
      <span class="hidden-text">{t("unused")}: </span>
      {markedParts(text, unused).map((part, index) => (part.isUnused ? <s key={index}>{part.text}</s> : part.text))}
    </p>
  );
}

interface Piece {
  text: string;
  isUnused: boolean;
}

function markedParts(text: string, unused: readonly string[]): Piece[] {
  const words = [...unused].sort((a, b) => b.length - a.length).map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${words.join("|")})(?![\\p{L}\\p{N}])`, "giu");
  // The pattern has a group, so every second piece is a match.
  return text.split(pattern).map((part, index) => ({ text: part, isUnused: index % 2 === 1 }));
}

/** The products of an answer, each with the versions that the answer is about. */
export function Results({ answer, titles }: { answer: AskAnswer; titles: ReadonlyMap<string, string> }) {
  const slugs = [...new Set(answer.sources.map((source) => source.product))];
  if (!slugs.length) {
    return null;
  }
  const cards = slugs.filter((slug) => titles.has(slug));
  const missingSlugs = slugs.filter((slug) => !titles.has(slug));
  return (
    <section aria-labelledby="results">
      <h2 id="results">
        {plural(slugs.length, tStore("library.one"), tStore("library.many"))}
      </h2>
      <ul class="cards">
        {cards.map((slug) => (
          <Card key={slug} product={product(answer, slug)}>
            {versions(answer, slug) && <p class="more small quiet">{versions(answer, slug)}</p>}
          </Card>
        ))}
      </ul>
      {missingSlugs.length > 0 && (
        <details class="disclosure">
          <summary>{t("others", { n: number(missingSlugs.length) })}</summary>
          <ul>
            {missingSlugs.map((slug) => (
              <li key={slug}>
                <a href={`/products/${encodeURIComponent(slug)}`}>{slug}</a>
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

const slugOf = ({ schema_object }: AskAnswer["results"][number]) => decodeURIComponent(String(schema_object["url"]).split("/").at(-1) ?? "");

/** The titles of the answer's products, by slug. */
export function titles(answer: AskAnswer | null): ReadonlyMap<string, string> {
  return new Map(answer?.results.map((result) => [slugOf(result), String(result.schema_object["name"])]));
}

function product(answer: AskAnswer, slug: string) {
  const result = answer.results.find((candidate) => slugOf(candidate) === slug);
  const about = (result?.schema_object ?? {}) as Readonly<Record<string, unknown>>;
  const platforms = String(about["operatingSystem"] ?? "").split(", ").filter((platform): platform is Platform => platform in PLATFORMS);
  const kind = about["applicationCategory"] as Schemas["Product"]["kind"];
  const { name: publisher } = (about["publisher"] ?? {}) as { name?: string };
  const isFree = about["isAccessibleForFree"];
  return {
    slug,
    title: String(about["name"]),
    platforms,
    kind,
    ...(publisher ? { publisher: { slug: "", name: publisher, verified: false } } : {}),
    ...(typeof isFree === "boolean" ? { access: isFree ? ("free" as const) : ("entitled" as const) } : {}),
  };
}

function versions(answer: AskAnswer, slug: string): string | undefined {
  const versions = answer.sources.flatMap((source) => (source.product === slug && source.release !== null ? [source.release] : []));
  const versionText = versions.slice(0, MAX_VERSIONS).join(", ") + (versions.length > MAX_VERSIONS ? " …" : "");
  return versions.length ? t("versions", { versions: versionText }) : undefined;
}
