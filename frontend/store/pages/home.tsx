// The list of products: a search that answers while one types, filters, and page after page as one gets there.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { urlFor } from "../../shared/client";
import { Button } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { LoadMore } from "../../shared/components/pager";
import { RequestResult, Empty, Failed } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { query } from "../../shared/router";
import { plural, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { ProductCard } from "../product_card";
import { Curl } from "../curl";
import { ProductFilters } from "../product_filters";

const t = translator("store");

const PAGE = 24;
/** In the order of web/product.py, so that what the server asked for already is not asked again. */
const FACETS = ["q", "kind", "platform", "org", "tag", "channel", "access", "published_since", "sort"] as const;

type Products = Schemas["ProductList"];

function asked() {
  const given = FACETS.map((name) => [name, query.value.get(name) || undefined]);
  return { limit: PAGE, ...Object.fromEntries(given) };
}

export function Home() {
  const about = asked();
  // The question stays with its answer: a cursor goes on with the list that it came with.
  const first = useRequest(
    async (signal) => ({ about, page: (await api.get("/api/v1/products", { query: about, signal })).value }),
    [JSON.stringify(about)],
    { keepsPrevious: true },
  );
  return (
    <>
      <Heading title={t("products")} />
      <ProductFilters />
      <RequestResult of={first}>
        {(found) => <Listed key={JSON.stringify(found.about)} first={found.page} about={found.about} />}
      </RequestResult>
    </>
  );
}

function Listed({ first, about }: { first: Products; about: object }) {
  const [more, setMore] = useState<Products[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const pages = [first, ...more];
  const items = pages.flatMap((page) => page.items);
  const cursor = pages.at(-1)?.next_cursor;
  const next = async () => {
    if (!cursor || isBusy) {
      return;
    }
    setBusy(true);
    setProblem(null);
    try {
      const found = await api.get("/api/v1/products", { query: { ...about, cursor } });
      setMore((had) => [...had, found.value]);
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, { detail: String(error) }));
    } finally {
      setBusy(false);
    }
  };
  if (!items.length && FACETS.every((name) => name === "sort" || !query.value.get(name))) {
    return <Empty />;
  }
  if (!items.length) {
    return (
      <Empty title={t("none")}>
        <p>{t("none.text")}</p>
        <Button onClick={() => location.assign("/")}>{t("none.clear")}</Button>
      </Empty>
    );
  }
  return (
    <>
      <p class="hidden-text" role="status">
        {plural(items.length, t("found.one"), t("found"))}
      </p>
      <ul class="cards">
        {items.map((each) => (
          <ProductCard key={each.id} product={each} />
        ))}
      </ul>
      <p>
        <Curl method="GET" path={urlFor("/api/v1/products", {}, about)} isOpen />
      </p>
      {problem && <Failed problem={problem} onRetry={next} />}
      {cursor && !problem && <LoadMore busy={isBusy} onMore={next} />}
    </>
  );
}
