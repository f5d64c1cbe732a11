// The front page: a few large products, then shelves, categories and short lists.
import { useEffect } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Heading } from "../../shared/components/heading";
import { Icon, type IconName } from "../../shared/components/icon";
import { Empty, FailureNotice } from "../../shared/components/states";
import { go, query } from "../../shared/router";
import { plural, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { COUNTED_FACETS, dayBefore, FACETS } from "../facets";
import { Hero } from "../hero";
import { ListPanel } from "../list_panel";
import { currentPlatform, PLATFORMS } from "../platform";
import { Shelf } from "../shelf";
import { CardBones } from "../skeleton";

const t = translator("store");

type Card = Schemas["Product"];

const PANEL = 4;
/** The number of products in a shelf that a wide window shows at once. */
const ROW = 5;
const NEW_DAYS = 30;
const WEEK_MS = 7 * 86_400_000;
/** The number of requested products for this system, by newest version. The page omits products that it shows above. */
const MANY = 24;

export function Home() {
  // Old addresses of the list, which was on this page, still work.
  const isList = FACETS.some((name) => query.value.get(name));
  useEffect(() => {
    if (isList) {
      go(`/browse?${query.peek()}`, { replaces: true });
    }
  }, [isList]);
  const homeRequest = useRequest(async (signal) => (await api.get("/api/v1/store/home", { signal })).value, []);
  return (
    <div class="wrap discover">
      <div class="hidden-text">
        <Heading title={t("discover")} />
      </div>
      {homeRequest.state === "failed" && <FailureNotice problem={homeRequest.problem} onRetry={homeRequest.reload} />}
      {homeRequest.state === "loading" && <HomeBones />}
      {homeRequest.state === "loaded" && <HomeContent home={homeRequest.value} />}
    </div>
  );
}

function HomeContent({ home }: { home: Schemas["Home"] }) {
  const shelves = Object.fromEntries(home.shelves.map((shelf) => [shelf.id, shelf]));
  const all = (id: string) => `/browse?${shelves[id]?.query ?? ""}`;
  const platformRequest = useRequest(
    async (signal) =>
      (await api.get("/api/v1/products", { query: { platform: currentPlatform, sort: "-published_at", limit: MANY }, signal })).value.items,
    [],
  );
  if (!home.hero.length) {
    return <Empty icon="package" />;
  }
  const { fresh, isOfWeek, free, downloaded, updated, kinds, others } = arranged(home);
  const platformProducts = platformRequest.state === "loaded" ? others(platformRequest.value).slice(0, PANEL) : null;
  return (
    <>
      <Hero products={home.hero} popular={shelves.downloaded?.items ?? []} />
      <Shelf title={t("home.new")} note={t(isOfWeek ? "home.new.week" : "home.new.text")} allAddress={all("new")} products={fresh} isFirst />
      <Categories />
      <Shelf title={t("home.free")} note={t("home.free.text")} allAddress={all("free")} products={free} />
      <div class="panels">
        <ListPanel title={t("home.updated")} allAddress={all("updated")} products={updated} />
        <ListPanel title={t("home.downloaded")} allAddress={all("downloaded")} products={downloaded} downloads={shelves.downloaded?.downloads_7d} />
        <ListPanel
          title={t("for", { platform: PLATFORMS[currentPlatform] })}
          allAddress={`/browse?platform=${currentPlatform}&sort=-published_at`}
          products={platformProducts}
          showsAccess
        />
      </div>
      {kinds.map(([id, products]) => (
        <Shelf key={id} title={t(`home.${id}`)} note={t("home.popular.text")} allAddress={all(id)} products={products} />
      ))}
    </>
  );
}

/** The products of each part of the page. In a shelf, products that another part shows come last. */
function arranged({ hero, shelves }: Schemas["Home"]) {
  const items = (id: string): readonly Card[] => shelves.find((shelf) => shelf.id === id)?.items ?? [];
  // These two lists also contain products that are shown large. The second list shows the time of each product's latest
  // version, so it is sorted by that time. The shelf of the server is sorted by the last change of the product.
  const downloaded = items("downloaded").slice(0, PANEL);
  const productsById = new Map(shelves.flatMap((shelf) => shelf.items).map((product) => [product.id, product]));
  const updated = newestFirst([...productsById.values()]).slice(0, PANEL);
  const shownIds = new Set([...hero, ...downloaded, ...updated].map((product) => product.id));
  const others = (products: readonly Card[]) => [...products].sort((a, b) => Number(shownIds.has(a.id)) - Number(shownIds.has(b.id)));
  const nextRow = (products: readonly Card[]) => {
    const ordered = others(products);
    ordered.slice(0, ROW).forEach((product) => shownIds.add(product.id));
    return ordered;
  };
  const newest = newestFirst(items("new"));
  const week = newest.filter(({ latest }) => latest && Date.now() - Date.parse(latest.published_at) <= WEEK_MS);
  const isOfWeek = week.filter((product) => !shownIds.has(product.id)).length >= ROW;
  const [fresh, free] = [nextRow(isOfWeek ? week : newest), nextRow(items("free"))];
  const kinds = (["games", "apps", "tools"] as const).map((id) => [id, nextRow(items(id))] as const);
  return { fresh, isOfWeek, free, downloaded, updated, kinds, others };
}

/** Sort products by the date that is shown beside them. */
function newestFirst(products: readonly Card[]): Card[] {
  return [...products].sort((a, b) => (b.latest?.published_at ?? "").localeCompare(a.latest?.published_at ?? ""));
}

/** Links to common filters of the list, with the number of products. */
function Categories() {
  const facetsRequest = useRequest(
    async (signal) => (await api.get("/api/v1/products", { query: { limit: 1, facets: COUNTED_FACETS }, signal })).value.facets ?? {},
    [],
  );
  const count = (facet: string, value: string) =>
    facetsRequest.state === "loaded" ? facetsRequest.value[facet]?.find((option) => option.value === value)?.count : undefined;
  const tiles: readonly (readonly [address: string, label: string, icon: IconName, count: number | undefined])[] = [
    ["kind=game", t("kinds.game"), "gamepad-2", count("kind", "game")],
    ["kind=app", t("kinds.app"), "app-window", count("kind", "app")],
    ["kind=tool", t("kinds.tool"), "wrench", count("kind", "tool")],
    ["access=free", t("free"), "sparkles", count("access", "free")],
    [`platform=${currentPlatform}`, t("for", { platform: PLATFORMS[currentPlatform] }), "monitor", count("platform", currentPlatform)],
    [`published_since=${dayBefore(NEW_DAYS)}&sort=-published_at`, t("home.month"), "clock", count("since", `${NEW_DAYS}d`)],
  ];
  return (
    <nav class="categories" aria-label={t("categories")}>
      {tiles.map(([address, label, icon, n]) => (
        <a key={address} href={`/browse?${address}`}>
          <Icon name={icon} />
          <span>
            {label}
            <small>{n === undefined ? "\u00a0" : plural(n, t("titles.one"), t("titles"))}</small>
          </span>
        </a>
      ))}
    </nav>
  );
}

function HomeBones() {
  return (
    <>
      <div class="hero" aria-hidden="true">
        <div class="bone feature" />
      </div>
      <CardBones count={5} isShelf />
    </>
  );
}
