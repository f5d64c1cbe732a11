// What the person owns: as cards or as a list, searched while one types, with the downloads of each and what they note.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { Button, LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { SelectField, TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Empty, Failed, Loading } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { setQuery, query } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { plural, number, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Card } from "../card";
import { Curl } from "../curl";
import { RequireSignIn } from "../require_sign_in";
import { filterAndSort, ORDERS } from "../library/filter_and_sort";
import { NotesSummary, NotesEditor } from "../library/notes_editor";
import { nextCursor } from "../ownership";
import { PLATFORMS } from "../platform";
import { Downloads } from "../product/downloads";
import { allCollections, clearNotes, productNotes } from "../product_notes";
import "../store.css";

const tCommon = translator("common");
const tLibrary = translator("library");
const t = translator("store");

type Owned = Schemas["Owned"];

const PAGE = 100;

export function Library() {
  return (
    <>
      <Heading title={t("library")}>
        <a href="/redeem">{t("redeem")}</a>
      </Heading>
      <RequireSignIn>
        <Shown />
      </RequireSignIn>
    </>
  );
}

function Shown() {
  const { owned, problem, reload } = useLibrary();
  const [words, setWords] = useState(query.value.get("q") ?? "");
  useLayoutEffect(
    () => registerShortcut({ key: "/", does: tCommon("keyboard.search"), run: () => document.getElementById("find")?.focus() }),
    [],
  );
  if (problem) {
    return <Failed problem={problem} onRetry={reload} />;
  }
  if (!owned) {
    return <Loading />;
  }
  if (!owned.length) {
    return (
      <Empty title={t("library.none")}>
        <p>{t("library.none.text")}</p>
        <LinkButton href="/redeem">{t("redeem")}</LinkButton>
      </Empty>
    );
  }
  const fitting = filterAndSort(owned, words);
  const hidden = owned.filter((each) => productNotes.value[each.id]?.isHidden).length;
  const isList = query.value.get("view") === "list";
  const type = (value: string) => {
    setWords(value);
    setQuery({ q: value.trim() });
  };
  return (
    <>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <TextField
          name="find"
          type="search"
          label={t("library.search")}
          value={words}
          onInput={(event) => type(event.currentTarget.value)}
          wide
        />
        <SelectField
          name="order"
          label={t("sort")}
          value={query.value.get("order") ?? ""}
          options={ORDERS.map((each) => [each, tLibrary(`library.order.${each}`)] as const)}
          onChange={(order) => setQuery({ order })}
        />
        <Collections />
        <div class="row" role="group" aria-label={t("view")}>
          <Button aria-pressed={!isList} onClick={() => setQuery({ view: "" })}>
            {t("view.grid")}
          </Button>
          <Button aria-pressed={isList} onClick={() => setQuery({ view: "list" })}>
            {t("view.list")}
          </Button>
        </div>
      </form>
      <p class="row small quiet">
        <span role="status">{plural(fitting.length, t("library.one"), t("library.many"))}</span>
        {(hidden > 0 || query.value.get("hidden")) && (
          <label class="check">
            <input
              type="checkbox"
              checked={query.value.get("hidden") === "1"}
              onChange={(event) => setQuery({ hidden: event.currentTarget.checked ? "1" : "" })}
            />
            {tLibrary("library.hidden.with", { n: number(hidden) })}
          </label>
        )}
        <Curl method="GET" path="/api/v1/library?limit=100" />
      </p>
      {isList ? <AsList products={fitting} /> : <AsCards products={fitting} />}
      <Kept />
    </>
  );
}

/** What is noted is of this browser: it says so, and how to be rid of it. */
function Kept() {
  return (
    <section class="stack apart" aria-labelledby="kept">
      <h2 id="kept">{tLibrary("shelf.here")}</h2>
      <p>{tLibrary("shelf.here.text")}</p>
      <div>
        <Button look="risky" onClick={() => (clearNotes(), showToast(tLibrary("shelf.forgotten")))}>
          {tLibrary("shelf.forget")}
        </Button>
      </div>
    </section>
  );
}

function Collections() {
  const names = allCollections();
  const now = query.value.get("collection") ?? "";
  if (!names.length && !now) {
    return null;
  }
  const known = now && !names.includes(now) ? [...names, now] : names;
  return (
    <SelectField
      name="collection"
      label={tLibrary("collections")}
      value={now}
      options={[["", t("any")], ...known.map((each) => [each, each] as const)]}
      onChange={(collection) => setQuery({ collection })}
    />
  );
}

function AsCards({ products }: { products: readonly Owned[] }) {
  return (
    <ul class="cards">
      {products.map((each) => (
        <Card level={2} key={each.id} product={each}>
          <NotesSummary product={each} />
          <Downloads product={each} />
          <NotesEditor product={each} />
        </Card>
      ))}
    </ul>
  );
}

function AsList({ products }: { products: readonly Owned[] }) {
  return (
    <ul class="results">
      {products.map((each) => (
        <li key={each.id}>
          <a href={`/products/${each.slug}`}>{each.title}</a>
          <Chip>{t(`kind.${each.kind}`)}</Chip>
          <span class="small quiet">{each.platforms.map((name) => PLATFORMS[name]).join(", ")}</span>
          <NotesSummary product={each} />
          <Downloads product={each} />
          <NotesEditor product={each} />
        </li>
      ))}
    </ul>
  );
}

/** The whole library, newest first; it is shown from its first page on while the rest comes. */
function useLibrary() {
  const [owned, setOwned] = useState<Owned[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    const read = async () => {
      let cursor: string | undefined;
      let all: Owned[] = [];
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
  return { owned, problem, reload: () => setRound(round + 1) };
}
