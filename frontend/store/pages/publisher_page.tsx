// The page of a publisher: facts, products, latest releases, and signing keys.
import type { ComponentChildren } from "preact";
import { useRequest } from "../../shared/request";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { NotFound } from "../../shared/components/shell";
import { Empty, FailureNotice } from "../../shared/components/states";
import { Tabs } from "../../shared/components/tabs";
import { query, setQuery } from "../../shared/router";
import { number, sinceWhen, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Card, CoverImage } from "../card";
import { LazyPage } from "../lazy_page";
import { FollowPublisher } from "../follow_publisher";
import { Monogram } from "../monogram";
import { CardBones } from "../skeleton";

const t = translator("store");

type Publisher = Schemas["Publisher"];
type Products = Schemas["ProductList"];
type Item = Products["items"][number];

const PAGE_SIZE = 60;
const MAX_IN_BANNER = 5;
const MAX_COLUMNS = 5;
const FIRST = "-updated_at";
const ORDERS = [FIRST, "title", "-downloads_7d"] as const;
const KINDS = ["game", "app", "tool"] as const;

export function PublisherPage({ slug }: { slug: string }) {
  const sort = ORDERS.find((order) => order === query.value.get("sort")) ?? FIRST;
  const publisherRequest = useRequest(
    async (signal) => {
      const [publisher, products] = await Promise.all([
        api.get("/api/v1/publishers/{slug}", { values: { slug }, signal }),
        api.get("/api/v1/products", { query: { limit: PAGE_SIZE, facets: "kind", org: slug, sort }, signal }),
      ]);
      return { publisher: publisher.value, products: products.value };
    },
    [slug, sort],
    { keepsPrevious: true },
  );
  if (publisherRequest.state === "failed" && publisherRequest.problem.status === 404) {
    return (
      <div class="wrap">
        <NotFound />
      </div>
    );
  }
  return (
    <div class="wrap">
      {publisherRequest.state === "failed" && (
        <>
          <Heading title={slug} />
          <FailureNotice problem={publisherRequest.problem} onRetry={publisherRequest.reload} />
        </>
      )}
      {publisherRequest.state === "loading" && (
        <>
          <h1 class="hidden-text">{slug}</h1>
          <div class="banner bone" aria-hidden="true" />
          <CardBones count={10} />
        </>
      )}
      {publisherRequest.state === "loaded" && <PublisherContent {...publisherRequest.value} sort={sort} />}
    </div>
  );
}

function PublisherContent({ publisher, products, sort }: { publisher: Publisher; products: Products; sort: (typeof ORDERS)[number] }) {
  const newest = [...products.items].sort((a, b) => (b.latest?.published_at ?? "").localeCompare(a.latest?.published_at ?? ""));
  return (
    <div class="publisher-page">
      <div class="banner" aria-hidden="true">
        {inBanner(newest).map((product) => (
          <CoverImage key={product.id} product={product} sizes="430px" isFirst />
        ))}
      </div>
      <div class="publisher-head">
        <Monogram slug={publisher.slug} name={publisher.name} size="xl" />
        <div class="grow">
          <Heading title={publisher.name}>
            {publisher.verified && (
              <span class="verified" title={t("publisher.verified")}>
                <Icon name="shield-check" size="l" />
              </span>
            )}
          </Heading>
          <p class="quiet">{saidOf(publisher)}</p>
        </div>
        <dl class="figures">
          <Figure name={t("publisher.products")} value={number(publisher.product_count)} />
          <Figure name={t("publisher.releases")} value={number(publisher.release_count)} />
          {publisher.last_release_at && <Figure name={t("publisher.last")} value={sinceWhen(publisher.last_release_at)} />}
        </dl>
        <div class="row publisher-actions">
          {publisher.website && (
            <a class="button" href={publisher.website} rel="noopener noreferrer nofollow ugc">
              <Icon name="external-link" />
              {t("homepage")}
            </a>
          )}
          <FollowPublisher slug={publisher.slug} name={publisher.name} />
        </div>
      </div>
      <div class="publisher-about">
        <p class="prose written">{publisher.text ?? t("publisher.text.none")}</p>
      </div>
      <Tabs
        label={publisher.name}
        chosen={query.value.get("tab") ?? "products"}
        onChoose={(tab) => setQuery({ tab: tab === "products" ? "" : tab })}
        tabs={[
          { name: "products", label: t("products"), count: publisher.product_count, content: () => <PublisherProducts products={products} sort={sort} /> },
          {
            name: "releases",
            label: t("releases"),
            count: publisher.release_count,
            content: () => (
              <LazyPage
                key="releases"
                load={async () => (await import("../publisher_tabs")).PublisherReleases}
                props={{ products: products.items }}
                isPart
              />
            ),
          },
          {
            name: "about",
            label: t("publisher.keys"),
            content: () => (
              <LazyPage
                key="about"
                load={async () => (await import("../publisher_tabs")).PublisherKeys}
                props={{ publisher, products: products.items }}
                isPart
              />
            ),
          },
        ]}
      />
    </div>
  );
}

/** The first products whose covers have different colours: their covers are the banner. The server picks the same. */
function inBanner(products: readonly Item[]): Item[] {
  const byColour = new Map(products.map((product) => [product.cover.color, product] as const).reverse());
  return products.filter((product) => byColour.get(product.cover.color) === product).slice(0, MAX_IN_BANNER);
}

/** The CSS class for four columns, if four fill the last row better than five. */
function columnsFor(count: number): string {
  return count > MAX_COLUMNS && ((count - 1) % 4) / 4 > ((count - 1) % 5) / 5 ? "cards four" : "cards";
}

/** The publisher's domain and first year here, in one line. */
function saidOf({ website, verified, since }: Publisher): string {
  const host = website?.replace(/^https?:\/\/(www\.)?|\/.*$/g, "");
  return [host, verified && t("publisher.verified"), t("publisher.since", { year: since.slice(0, 4) })].filter(Boolean).join(" · ");
}

function Figure({ name, value }: { name: string; value: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function PublisherProducts({ products, sort }: { products: Products; sort: string }) {
  const kind = query.value.get("kind") ?? "";
  const kinds = KINDS.filter((kind) => products.items.some((item) => item.kind === kind));
  const shownProducts = products.items.filter((item) => !kind || item.kind === kind);
  return (
    <>
      <div class="toolbar">
        {kinds.length > 1 && (
          <div class="segments" role="group" aria-label={t("kind")}>
            {(["", ...kinds] as const).map((option) => (
              <button key={option} type="button" aria-pressed={kind === option} onClick={() => setQuery({ kind: option })}>
                {option ? t(`kinds.${option}`) : t("all.kinds")}
              </button>
            ))}
          </div>
        )}
        <label class="row right">
          <select
            class="input"
            aria-label={t("sort")}
            value={sort}
            onChange={(event) => setQuery({ sort: event.currentTarget.value === FIRST ? "" : event.currentTarget.value })}
          >
            {ORDERS.map((order) => (
              <option key={order} value={order} selected={order === sort}>
                {order === FIRST ? t("publisher.newest") : order === "title" ? t("sort.title") : t(`sort.${order}`)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {shownProducts.length ? (
        <ul class={columnsFor(shownProducts.length)}>
          {shownProducts.map((product, place) => (
            <Card key={product.id} product={product} level={2} isFirst={place < 10} />
          ))}
        </ul>
      ) : (
        <Empty title={t("none")} icon="package" />
      )}
    </>
  );
}
