// The search in the top bar. While the person types, a panel shows suggestions; on the page of results, the results are updated.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "../../shared/components/icon";
import { go, path, query, setQuery } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { translator } from "../../shared/i18n";
import { api } from "../api";
import { coverOf } from "../catalog_item";

const tCommon = translator("common");
const t = translator("store");

const TYPING_MS = 150;
const MIN_LENGTH = 2;

/** A search field with a list of choices (ARIA authoring practices, combobox). */
const COMBOBOX = { type: "search", role: "combobox" } as object;

interface Choice {
  address: string;
  label: string;
  /** The cover of a product; other choices have an icon. */
  cover?: string;
  icon?: IconName;
  note?: string | undefined;
}

interface Props {
  id: string;
  /** Whether the search fills the screen: suggestions are always shown, and closing the search leaves the full
   *  screen. */
  isOpen?: boolean;
  onLeave?: () => void;
}

export function SearchBox({ id, isOpen = false, onLeave }: Props) {
  const listId = useId();
  const input = useRef<HTMLInputElement>(null);
  const isBrowsing = path.value === "/browse" && !isOpen;
  const [searchText, setSearchText] = useState(isBrowsing ? (query.value.get("q") ?? "") : "");
  const [hasFocus, setFocus] = useState(false);
  const [suggestions, setSuggestions] = useState<{ words: string; choices: readonly Choice[] } | null>(null);
  const [activeIndex, setActiveIndex] = useState(-1);
  const searchedWords = isBrowsing ? (query.value.get("q") ?? "") : "";
  const sentWords = useRef(searchedWords);
  useEffect(() => {
    // The back button or a link has changed the words.
    if (searchedWords !== sentWords.current) {
      sentWords.current = searchedWords;
      setSearchText(searchedWords);
    }
  }, [searchedWords]);
  useEffect(() => {
    if (isOpen) {
      input.current?.focus();
    }
  }, [isOpen]);
  const text = searchText.trim();
  useEffect(() => {
    setActiveIndex(-1);
    if (isBrowsing || text.length < MIN_LENGTH || !(hasFocus || isOpen)) {
      setSuggestions(null);
      return undefined;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      suggest(text, controller.signal).then(
        (choices) => setSuggestions({ words: text, choices }),
        () => setSuggestions(null),
      );
    }, TYPING_MS);
    return () => (clearTimeout(timer), controller.abort());
  }, [text, isBrowsing, hasFocus]);
  useEffect(() => {
    if (!isBrowsing || text === (query.peek().get("q") ?? "")) {
      return undefined;
    }
    const timer = setTimeout(() => {
      sentWords.current = text;
      // The order by relevance needs words.
      const isLost = !text && query.peek().get("sort") === "relevance";
      setQuery({ q: text, ...(isLost ? { sort: "" } : {}) });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useLayoutEffect(
    () => (isOpen ? undefined : registerShortcut({ key: "/", does: tCommon("keyboard.search"), run: () => input.current?.focus() })),
    [isOpen],
  );
  const leave = (address: string) => {
    setSuggestions(null);
    setActiveIndex(-1);
    input.current?.blur();
    onLeave?.();
    go(address);
  };
  const choices = suggestions?.choices ?? [];
  const allResultsAddress = `/browse?q=${encodeURIComponent(text)}`;
  const handleKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && choices.length) {
      event.preventDefault();
      setActiveIndex((index) => ((index + step + 1 + choices.length + 1) % (choices.length + 1)) - 1);
    } else if (event.key === "Escape" && !isOpen) {
      if (suggestions) {
        setSuggestions(null);
      } else {
        input.current?.blur();
      }
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isBrowsing && text) {
      leave(choices[activeIndex]?.address ?? allResultsAddress);
    }
  };
  const isShown = choices.length > 0;
  return (
    <form
      class="search"
      role="search"
      aria-label={t("search.store")}
      onSubmit={submit}
      onFocusIn={() => setFocus(true)}
      onFocusOut={() => setFocus(false)}
    >
      <Icon name="search" />
      <input
        ref={input}
        id={id}
        {...COMBOBOX}
        aria-label={t("search")}
        aria-expanded={isShown}
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={activeIndex >= 0 ? `${listId}-${activeIndex}` : undefined}
        placeholder={t("search.help")}
        maxLength={200}
        autocomplete="off"
        enterkeyhint="search"
        value={searchText}
        onInput={(event) => {
          // Firefox sends focus events only while its window is in front.
          setFocus(true);
          setSearchText(event.currentTarget.value);
        }}
        onKeyDown={handleKey}
      />
      <kbd aria-hidden="true">/</kbd>
      <div class="search-panel" id={listId} role="listbox" aria-label={t("search.found")} hidden={!isShown}>
        {choices.map((choice, index) => (
          <a
            key={choice.address}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === activeIndex}
            tabIndex={-1}
            href={choice.address}
            onPointerDown={(event) => event.preventDefault()}
            onClick={(event) => (event.preventDefault(), leave(choice.address))}
          >
            {choice.cover ? <img src={choice.cover} alt="" width={56} height={32} /> : choice.icon && <Icon name={choice.icon} />}
            <span class="grow">
              <span class="name">{choice.label}</span>
              {choice.note && <span class="note">{choice.note}</span>}
            </span>
          </a>
        ))}
      </div>
    </form>
  );
}

/** Load the suggestions for the words: products, publishers and tags; then asking a question, and all results. */
async function suggest(searchText: string, signal: AbortSignal): Promise<Choice[]> {
  const { value } = await api.get("/api/v1/search/suggest", { query: { q: searchText }, signal });
  return [
    ...value.products.map((product) => ({
      address: `/products/${product.slug}`,
      label: product.title,
      cover: coverOf(product).url,
      note: `${t(`kind.${product.kind}`)} · ${product.publisher.name}`,
    })),
    ...value.publishers.map(({ slug, name }) => ({
      address: `/publishers/${encodeURIComponent(slug)}`,
      label: name,
      icon: "building-2" as const,
      note: t("maker"),
    })),
    ...value.tags.map(({ value: tag }) => ({ address: `/browse?tag=${encodeURIComponent(tag)}`, label: tag, icon: "tag" as const, note: t("tag") })),
    { address: `/questions?q=${encodeURIComponent(searchText)}`, label: t("ask.words", { words: searchText }), icon: "sparkles" },
    { address: `/browse?q=${encodeURIComponent(searchText)}`, label: t("search.all"), icon: "search" },
  ];
}
