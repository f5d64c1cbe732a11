// The search field and the filters of the product list; their values are in the address.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../shared/components/button";
import { SelectField, TextField } from "../shared/components/field";
import { setQuery, query } from "../shared/router";
import { registerShortcut } from "../shared/shortcuts";
import { date, translator } from "../shared/i18n";
import { PLATFORMS } from "./platform";

const tCommon = translator("common");
const t = translator("store");

const TYPING_MS = 120;
const CHANNELS = ["stable", "beta", "nightly", "alpha"] as const;
const DAYS = [7, 30, 365] as const;

type Facet = "kind" | "platform" | "channel" | "access" | "published_since" | "sort";

export function ProductFilters() {
  const now = query.value.get("q") ?? "";
  const [typed, setTyped] = useState(now);
  const search = useRef<number>(0);
  const sent = useRef(now);
  const type = (words: string) => {
    setTyped(words);
    clearTimeout(search.current);
    search.current = window.setTimeout(() => {
      sent.current = words.trim();
      // Without words there is nothing to be relevant to.
      const isLost = !words.trim() && query.value.get("sort") === "relevance";
      setQuery({ q: words.trim(), ...(isLost ? { sort: "" } : {}) });
    }, TYPING_MS);
  };
  useEffect(() => {
    // The back button, or a link, brought other words than were typed here.
    if (now !== sent.current) {
      sent.current = now;
      setTyped(now);
    }
  }, [now]);
  useLayoutEffect(
    () => registerShortcut({ key: "/", does: tCommon("keyboard.search"), run: () => document.getElementById("q")?.focus() }),
    [],
  );
  useEffect(() => () => clearTimeout(search.current), []);
  const facet = (name: Facet, options: readonly (readonly [string, string])[]) => (
    <SelectField
      name={name}
      label={t(name)}
      value={query.value.get(name) ?? ""}
      options={[["", name === "sort" ? t("sort.title") : t("any")], ...options]}
      onChange={(value) => setQuery({ [name]: value }, { replaces: false })}
    />
  );
  const since = query.value.get("published_since") ?? "";
  const days = DAYS.map((each) => [dayBefore(each), t(`since.${each}`)] as const);
  const isOther = since !== "" && !days.some(([day]) => day === since);
  const orders: (readonly [string, string])[] = [["-published_at", t("sort.-published_at")]];
  return (
    <>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <TextField
          name="q"
          type="search"
          label={t("search")}
          placeholder={t("search.help")}
          value={typed}
          maxLength={200}
          autocomplete="off"
          onInput={(event) => type(event.currentTarget.value)}
          wide
        />
        {facet("kind", (["game", "app", "tool"] as const).map((each) => [each, t(`kind.${each}`)]))}
        {facet("platform", Object.entries(PLATFORMS))}
        {facet("channel", CHANNELS.map((each) => [each, each]))}
        {facet("access", (["free", "entitled"] as const).map((each) => [each, t(each)]))}
        {facet("published_since", [...days, ...(isOther ? [[since, t("since.day", { day: shownDay(since) })] as const] : [])])}
        {facet("sort", now ? [["relevance", t("sort.relevance")], ...orders] : orders)}
      </form>
      <Chosen />
    </>
  );
}

/** The day (UTC) so many days before today: the address means the same to whoever opens it later. */
function dayBefore(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

/** A day as one reads it; what is no day stays as it is, and the answer says so. */
function shownDay(day: string): string {
  return Number.isNaN(Date.parse(day)) ? day : date(day);
}

/** The filters that have no field, as buttons that take them away. */
function Chosen() {
  const chosen = (["org", "tag"] as const).flatMap((name) => {
    const value = query.value.get(name);
    return value ? [[name, value] as const] : [];
  });
  if (!chosen.length) {
    return null;
  }
  return (
    <ul class="chosen" aria-label={t("chosen")}>
      {chosen.map(([name, value]) => (
        <li key={name}>
          <Button tight onClick={() => setQuery({ [name]: "" }, { replaces: false })}>
            {t(name === "org" ? "maker" : "tags")}: {value} <span aria-hidden="true">×</span>
            <span class="hidden-text">{t("chosen.drop")}</span>
          </Button>
        </li>
      ))}
    </ul>
  );
}
