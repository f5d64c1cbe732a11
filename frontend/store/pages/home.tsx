// The list of products: a search that answers while one types, filters, and page after page as one gets there.
import { useEffect, useRef, useState } from "preact/hooks";
import { useAsked } from "../../shared/asked";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { SelectField, TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { More } from "../../shared/components/pager";
import { Answer, Empty } from "../../shared/components/states";
import { ask, query } from "../../shared/router";
import { say as shared } from "../../shared/say";
import { shortcut } from "../../shared/shortcuts";
import { number } from "../../shared/words";
import { api, type Schemas } from "../api";
import { PLATFORMS } from "../platform";
import { say } from "../say";

const PAGE = 24;
const TYPING_MS = 120;
/** In the order of web/product.py, so that what the server asked for already is not asked again. */
const FACETS = ["q", "kind", "platform", "org", "tag", "sort"] as const;

type Products = Schemas["ProductList"];

function asked() {
  const given = FACETS.map((name) => [name, query.value.get(name) || undefined]);
  return { limit: PAGE, ...Object.fromEntries(given) };
}

export function Home() {
  const about = asked();
  // The question stays with its answer: a cursor goes on with the list that it came with.
  const first = useAsked(
    async (signal) => ({ about, page: (await api.get("/api/v1/products", { query: about, signal })).value }),
    [JSON.stringify(about)],
    { keeps: true },
  );
  return (
    <>
      <Heading title={say("products")} />
      <Filters />
      <Answer of={first}>
        {(found) => <Listed key={JSON.stringify(found.about)} first={found.page} about={found.about} />}
      </Answer>
    </>
  );
}

function Filters() {
  const [typed, setTyped] = useState(query.value.get("q") ?? "");
  const search = useRef<number>(0);
  const type = (words: string) => {
    setTyped(words);
    clearTimeout(search.current);
    search.current = window.setTimeout(() => ask({ q: words.trim() }), TYPING_MS);
  };
  useEffect(
    () => shortcut({ key: "/", does: shared("keyboard.search"), run: () => document.getElementById("q")?.focus() }),
    [],
  );
  const facet = (name: "kind" | "platform" | "sort", options: readonly (readonly [string, string])[]) => (
    <SelectField
      name={name}
      label={say(name)}
      value={query.value.get(name) ?? ""}
      options={[["", name === "sort" ? say("sort.title") : say("any")], ...options]}
      onChange={(value) => ask({ [name]: value }, { replaces: false })}
    />
  );
  return (
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
      {facet("sort", [["-published_at", say("sort.-published_at")]])}
    </form>
  );
}

function Listed({ first, about }: { first: Products; about: object }) {
  const [more, setMore] = useState<Products[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>("");
  const pages = [first, ...more];
  const items = pages.flatMap((page) => page.items);
  const cursor = pages.at(-1)?.next_cursor;
  const next = async () => {
    if (!cursor || isBusy) {
      return;
    }
    setBusy(true);
    setProblem("");
    try {
      const found = await api.get("/api/v1/products", { query: { ...about, cursor } });
      setMore((had) => [...had, found.value]);
    } catch (error) {
      setProblem(String((error as Error).message));
    } finally {
      setBusy(false);
    }
  };
  if (!items.length) {
    return (
      <Empty title={say("none")}>
        <p>{say("none.text")}</p>
        <Button onClick={() => location.assign("/")}>{say("none.clear")}</Button>
      </Empty>
    );
  }
  return (
    <>
      <p class="hidden-text" role="status">
        {say("found", { n: number(items.length) })}
      </p>
      <ul class="cards">
        {items.map((each) => (
          <li key={each.id} class="card">
            <h2>
              <a href={`/products/${each.slug}`}>{each.title}</a>
            </h2>
            <p>{each.description}</p>
            <span class="row">
              <Chip>{say(`kind.${each.kind}`)}</Chip>
              <span class="small quiet">{each.platforms.map((name) => PLATFORMS[name]).join(", ")}</span>
            </span>
          </li>
        ))}
      </ul>
      {problem && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      {cursor && <More busy={isBusy} onMore={next} />}
    </>
  );
}
