// What the person owns: as cards or as a list, searched while one types, with the downloads of each.
import { useEffect, useState } from "preact/hooks";
import { Button, LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Empty, Failed, Loading } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { ask, query } from "../../shared/router";
import { shortcut } from "../../shared/shortcuts";
import { say as shared } from "../../shared/say";
import { counted } from "../../shared/words";
import { api, type Schemas } from "../api";
import { Card } from "../card";
import { SignedIn } from "../first";
import { nextCursor } from "../owned";
import { PLATFORMS } from "../platform";
import { Downloads } from "../product/downloads";
import { say } from "../say";

type Product = Schemas["Product"];

const PAGE = 100;

export function Library() {
  return (
    <>
      <Heading title={say("library")}>
        <a href="/redeem">{say("redeem")}</a>
      </Heading>
      <SignedIn>
        <Owned />
      </SignedIn>
    </>
  );
}

function Owned() {
  const { owned, problem, again } = useLibrary();
  const [words, setWords] = useState(query.value.get("q") ?? "");
  useEffect(
    () => shortcut({ key: "/", does: shared("keyboard.search"), run: () => document.getElementById("find")?.focus() }),
    [],
  );
  if (problem) {
    return <Failed problem={problem} again={again} />;
  }
  if (!owned) {
    return <Loading />;
  }
  if (!owned.length) {
    return (
      <Empty title={say("library.none")}>
        <p>{say("library.none.text")}</p>
        <LinkButton href="/redeem">{say("redeem")}</LinkButton>
      </Empty>
    );
  }
  const wanted = words.trim().toLocaleLowerCase();
  const fitting = owned.filter((each) => `${each.title} ${each.description ?? ""}`.toLocaleLowerCase().includes(wanted));
  const isList = query.value.get("view") === "list";
  const type = (value: string) => {
    setWords(value);
    ask({ q: value.trim() });
  };
  return (
    <>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <TextField
          name="find"
          type="search"
          label={say("library.search")}
          value={words}
          onInput={(event) => type(event.currentTarget.value)}
          wide
        />
        <div class="row" role="group" aria-label={say("view")}>
          <Button aria-pressed={!isList} onClick={() => ask({ view: "" })}>
            {say("view.grid")}
          </Button>
          <Button aria-pressed={isList} onClick={() => ask({ view: "list" })}>
            {say("view.list")}
          </Button>
        </div>
      </form>
      <p class="small quiet" role="status">
        {counted(fitting.length, say("library.one"), say("library.many"))}
      </p>
      {isList ? <AsList products={fitting} /> : <AsCards products={fitting} />}
    </>
  );
}

function AsCards({ products }: { products: readonly Product[] }) {
  return (
    <ul class="cards">
      {products.map((each) => (
        <Card key={each.id} product={each}>
          <Downloads product={each} />
        </Card>
      ))}
    </ul>
  );
}

function AsList({ products }: { products: readonly Product[] }) {
  return (
    <ul class="results">
      {products.map((each) => (
        <li key={each.id}>
          <a href={`/products/${each.slug}`}>{each.title}</a>
          <Chip>{say(`kind.${each.kind}`)}</Chip>
          <span class="small quiet">{each.platforms.map((name) => PLATFORMS[name]).join(", ")}</span>
          <Downloads product={each} />
        </li>
      ))}
    </ul>
  );
}

/** The whole library, newest first; it is shown from its first page on while the rest comes. */
function useLibrary() {
  const [owned, setOwned] = useState<Product[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    const read = async () => {
      let cursor: string | undefined;
      let all: Product[] = [];
      do {
        const asked = { limit: PAGE, ...(cursor ? { cursor } : {}) };
        const found = await api.get("/api/v1/library", { query: asked, signal: controller.signal });
        all = [...all, ...found.value];
        setOwned(all);
        cursor = nextCursor(found.headers);
      } while (cursor);
    };
    setProblem(null);
    read().catch((error: unknown) => {
      if (!controller.signal.aborted) {
        setProblem(error instanceof Problem ? error : new Problem(0, { detail: String(error) }));
      }
    });
    return () => controller.abort();
  }, [round]);
  return { owned, problem, again: () => setRound(round + 1) };
}
