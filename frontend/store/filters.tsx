// What narrows the list of products: words that are looked for while one types, and filters, all in the address.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../shared/components/button";
import { SelectField, TextField } from "../shared/components/field";
import { ask, query } from "../shared/router";
import { say as shared } from "../shared/say";
import { shortcut } from "../shared/shortcuts";
import { PLATFORMS } from "./platform";
import { say } from "./say";

const TYPING_MS = 120;

export function Filters() {
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
      ask({ q: words.trim(), ...(isLost ? { sort: "" } : {}) });
    }, TYPING_MS);
  };
  useEffect(() => {
    // The back button, or a link, brought other words than were typed here.
    if (now !== sent.current) {
      sent.current = now;
      setTyped(now);
    }
  }, [now]);
  useEffect(
    () => shortcut({ key: "/", does: shared("keyboard.search"), run: () => document.getElementById("q")?.focus() }),
    [],
  );
  useEffect(() => () => clearTimeout(search.current), []);
  const facet = (name: "kind" | "platform" | "sort", options: readonly (readonly [string, string])[]) => (
    <SelectField
      name={name}
      label={say(name)}
      value={query.value.get(name) ?? ""}
      options={[["", name === "sort" ? say("sort.title") : say("any")], ...options]}
      onChange={(value) => ask({ [name]: value }, { replaces: false })}
    />
  );
  const orders: (readonly [string, string])[] = [["-published_at", say("sort.-published_at")]];
  return (
    <>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <TextField
          name="q"
          type="search"
          label={say("search")}
          placeholder={say("search.help")}
          value={typed}
          maxLength={200}
          autocomplete="off"
          onInput={(event) => type(event.currentTarget.value)}
          wide
        />
        {facet("kind", (["game", "app", "tool"] as const).map((each) => [each, say(`kind.${each}`)]))}
        {facet("platform", Object.entries(PLATFORMS))}
        {facet("sort", now ? [["relevance", say("sort.relevance")], ...orders] : orders)}
      </form>
      <Chosen />
    </>
  );
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
    <ul class="chosen" aria-label={say("chosen")}>
      {chosen.map(([name, value]) => (
        <li key={name}>
          <Button tight onClick={() => ask({ [name]: "" }, { replaces: false })}>
            {say(name === "org" ? "maker" : "tags")}: {value} <span aria-hidden="true">×</span>
            <span class="hidden-text">{say("chosen.drop")}</span>
          </Button>
        </li>
      ))}
    </ul>
  );
}
