// The list of products for a search and filters, as cards or rows.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { urlFor } from "../../shared/client";
import { Button, LinkButton } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { Empty, FailureNotice } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { query, setQuery } from "../../shared/router";
import { number, plural, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Card } from "../card";
import { Curl } from "../curl";
import { COUNTED_FACETS, FACETS, Facets, Tokens } from "../facets";
import { ProductRow } from "../product_row";
import { SearchMode } from "../search_mode";
import { CardBones } from "../skeleton";

const t = translator("store");

const PAGE_SIZE = 24;
const VIEW = "countersign-browse";

type Products = Schemas["ProductList"];

function asked() {
  const facetValues = FACETS.map((name) => [name, query.value.get(name) || undefined]);
  return { limit: PAGE_SIZE, facets: COUNTED_FACETS, ...Object.fromEntries(facetValues) };
}

export function Browse() {
  const about = asked();
  const [isFiltering, setFiltering] = useState(false);
  // Keep the query with its result, because a cursor only continues its own list.
  const firstRequest = useRequest(
    async (signal) => ({ about, page: (await api.get("/api/v1/products", { query: about, signal })).value }),
    [JSON.stringify(about)],
    { keepsPrevious: true },
  );
  const list = firstRequest.state === "loaded" ? firstRequest.value.page : null;
  const searchText = query.value.get("q");
  const kind = query.value.get("kind");
  const isKind = kind === "game" || kind === "app" || kind === "tool";
  const title = searchText ? t("results.for", { words: searchText }) : isKind ? t(`kinds.${kind}`) : t("all.products");
  return (
    <div class="wrap browse">
      <div class="facets-column">
        <Facets list={list} />
      </div>
      <div class="results-column">
        <Heading title={title}>{searchText && <SearchMode current="words" text={searchText} />}</Heading>
        <div class="toolbar">
          <span role="status" class="quiet">
            {list && plural(list.total ?? list.items.length, t("found.one"), t("found"))}
          </span>
          <Tokens />
          <span class="right row">
            <span class="narrow-only">
              <Button onClick={() => setFiltering(true)}>
                <Icon name="sliders-horizontal" />
                {t("filters")}
              </Button>
            </span>
            <Sort />
            <View />
          </span>
        </div>
        {firstRequest.state === "failed" && <FailureNotice problem={firstRequest.problem} onRetry={firstRequest.reload} />}
        {firstRequest.state === "loading" && <CardBones />}
        {firstRequest.state === "loaded" && <ProductPages key={JSON.stringify(firstRequest.value.about)} first={firstRequest.value.page} about={firstRequest.value.about} />}
      </div>
      <Dialog
        title={t("filters")}
        isOpen={isFiltering}
        onClose={() => setFiltering(false)}
        variant="sheet"
        actions={
          <Button variant="strong" onClick={() => setFiltering(false)}>
            {list ? plural(list.total ?? list.items.length, t("filters.show.one"), t("filters.show")) : t("filters")}
          </Button>
        }
      >
        <Facets list={list} />
      </Dialog>
    </div>
  );
}

function Sort() {
  const now = query.value.get("sort") ?? "";
  const orders = [...(query.value.get("q") ? (["relevance"] as const) : []), "-published_at", "-updated_at", "-downloads_7d"] as const;
  return (
    <label class="row">
      <span class="quiet wide-only">{t("sort")}</span>
      <select
        class="input"
        aria-label={t("sort")}
        value={now}
        onChange={(event) => setQuery({ sort: event.currentTarget.value }, { replaces: false })}
      >
        <option value="" selected={now === ""}>
          {t("sort.title")}
        </option>
        {orders.map((order) => (
          <option key={order} value={order} selected={order === now}>
            {t(`sort.${order}`)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Switches between cards and rows. The choice is stored in the browser. */
function View() {
  const now = view();
  const choose = (chosen: "grid" | "list") => {
    localStorage.setItem(VIEW, chosen);
    setQuery({ view: chosen === "list" ? chosen : "" });
  };
  return (
    <span class="segments" role="group" aria-label={t("view")}>
      {(["grid", "list"] as const).map((layout) => (
        <button key={layout} type="button" aria-pressed={now === layout} aria-label={t(`view.${layout}`)} onClick={() => choose(layout)}>
          <Icon name={layout === "grid" ? "layout-grid" : "list"} />
        </button>
      ))}
    </span>
  );
}

function view(): "grid" | "list" {
  return (query.value.get("view") ?? localStorage.getItem(VIEW)) === "list" ? "list" : "grid";
}

function ProductPages({ first, about }: { first: Products; about: object }) {
  const [more, setMore] = useState<Products[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const pages = [first, ...more];
  const items = pages.flatMap((page) => page.items);
  const cursor = pages.at(-1)?.next_cursor;
  const loadNext = async () => {
    if (!cursor || isBusy) {
      return;
    }
    setBusy(true);
    setProblem(null);
    try {
      const { facets: _, ...others } = about as Record<string, string>;
      const nextPage = await api.get("/api/v1/products", { query: { ...others, cursor } });
      setMore((pages) => [...pages, nextPage.value]);
    } catch (error) {
      setProblem(Problem.from(error));
    } finally {
      setBusy(false);
    }
  };
  if (!items.length && FACETS.every((name) => name === "sort" || !query.value.get(name))) {
    return <Empty icon="package" />;
  }
  if (!items.length) {
    return (
      <Empty title={t("none")} icon="search">
        <p>{t("none.text")}</p>
        <LinkButton href="/browse">{t("none.clear")}</LinkButton>
      </Empty>
    );
  }
  const isList = view() === "list";
  return (
    <>
      <ul class={isList ? "product-rows panel-box" : "cards"}>
        {items.map((item, place) =>
          isList ? <ProductRow key={item.id} product={item} /> : <Card key={item.id} product={item} level={2} isFirst={place < 10} />,
        )}
      </ul>
      {problem && <FailureNotice problem={problem} onRetry={loadNext} />}
      <div class="list-end">
        {cursor && !problem && (
          <Button busy={isBusy} onClick={loadNext}>
            {t("more", { n: Math.min(PAGE_SIZE, (first.total ?? Infinity) - items.length) })}
          </Button>
        )}
        {first.total !== undefined && <p class="quiet">{t("shown", { n: number(items.length), all: number(first.total) })}</p>}
        <Curl method="GET" path={urlFor("/api/v1/products", {}, about)} isOpen />
      </div>
    </>
  );
}
