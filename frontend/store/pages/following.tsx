// What is new of the products and publishers that a person follows, by day, and beside it what they follow.
import { useRequest } from "../../shared/request";
import { Button, LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { RequestResult, Empty, Loading } from "../../shared/components/states";
import { dateTime, longDay, relativePast, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { CoverImage, publisherOf } from "../card";
import { follow, followedPublishers, useFollowedPublishers } from "../follow_publisher";
import { me } from "../me";
import { Monogram } from "../monogram";
import { feedUrl } from "../product/follow";
import { updateNotes, productNotes } from "../product_notes";
import "../following.css";

const tLibrary = translator("library");
const t = translator("store");

type Detail = Schemas["ProductDetail"];
type Product = Schemas["Product"];

const AT_ONCE = 50;
const OF_PUBLISHER = 12;

interface News {
  product: Product;
  version: string;
  channel: string;
  at: string;
  isNew: boolean;
}

interface Followed {
  products: Detail[];
  publishers: { slug: string; name: string; products: Product[] }[];
}

export function Following() {
  useFollowedPublishers();
  return (
    <div class="wrap">
      <Heading title={t("following")} />
      {me.value === undefined ? <Loading /> : <Shown />}
    </div>
  );
}

function Shown() {
  const ids = Object.keys(productNotes.value).filter((each) => productNotes.value[each]?.followed);
  const slugs = [...(followedPublishers.value ?? [])].sort();
  const found = useRequest((signal) => read(ids, slugs, signal), [ids.join(), slugs.join()], { keepsPrevious: true });
  if (!ids.length && !slugs.length) {
    return (
      <Empty title={tLibrary("following.none")} icon="heart">
        <p>{tLibrary("following.none.text")}</p>
        <LinkButton href="/browse">{t("browse")}</LinkButton>
      </Empty>
    );
  }
  return (
    <RequestResult of={found}>
      {(followed) => (
        <div class="following">
          <div>
            {days(newsOf(followed)).map(([day, news]) => (
              <section key={day} class="feed-day" aria-label={longDay(new Date(day))}>
                <h2>{longDay(new Date(day))}</h2>
                <ul class="panel-box">
                  {news.map((each) => (
                    <Entry key={`${each.product.id} ${each.channel}`} news={each} />
                  ))}
                </ul>
              </section>
            ))}
          </div>
          <Side {...followed} />
        </div>
      )}
    </RequestResult>
  );
}

function Entry({ news: { product, version, channel, at, isNew } }: { news: News }) {
  return (
    <li class="feed-entry">
      <CoverImage product={product} sizes="128px" />
      <div class="grow">
        <h3>
          <a href={`/products/${product.slug}?channel=${channel}`}>
            {product.title} {version}
          </a>
          {isNew && <Chip tone="good">{tLibrary("following.new")}</Chip>}
        </h3>
        <p class="quiet">{[publisherOf(product), channel === "stable" ? "" : channel].filter(Boolean).join(" · ")}</p>
      </div>
      <time class="quiet small" dateTime={at} title={dateTime(at)}>
        {relativePast(at)}
      </time>
    </li>
  );
}

/** What is followed, and the way to end it. */
function Side({ products, publishers }: Followed) {
  return (
    <aside class="panel-box followed" aria-label={tLibrary("followed")}>
      <h2>{tLibrary("followed")}</h2>
      <ul>
        {publishers.map(({ slug, name }) => (
          <li key={slug}>
            <Monogram slug={slug} name={name} />
            <a class="cut grow" href={`/publishers/${slug}`}>
              {name}
            </a>
            <Button tight onClick={() => void follow(slug, false)}>
              {tLibrary("following.end")} <span class="hidden-text">{name}</span>
            </Button>
          </li>
        ))}
        {products.map((each) => (
          <li key={each.id}>
            <CoverImage product={each} sizes="64px" />
            <span class="grow">
              <a class="cut" href={`/products/${each.slug}`}>
                {each.title}
              </a>
              <a class="small quiet" href={feedUrl(each)} type="application/atom+xml">
                {tLibrary("feed")} <span class="hidden-text">{each.title}</span>
              </a>
            </span>
            <Button tight onClick={() => updateNotes(each.id, { followed: "" })}>
              {tLibrary("following.end")} <span class="hidden-text">{each.title}</span>
            </Button>
          </li>
        ))}
      </ul>
      <p class="small quiet">{tLibrary("following.text")}</p>
    </aside>
  );
}

/** The newest release of each channel of each product, the newest first; of publishers, of their latest products. */
function newsOf({ products, publishers }: Followed): News[] {
  const own = products.flatMap((product) =>
    product.channels.map(({ version, channel, published_at }) => ({
      product,
      version,
      channel,
      at: published_at,
      isNew: published_at > (productNotes.value[product.id]?.followed ?? ""),
    })),
  );
  const known = new Set(products.map((each) => each.id));
  const others = publishers
    .flatMap((each) => each.products)
    .filter((each) => !known.has(each.id))
    .flatMap((product) =>
      product.latest ? [{ product, version: product.latest.version, channel: product.latest.channel, at: product.latest.published_at, isNew: false }] : [],
    );
  return [...own, ...others].sort((a, b) => b.at.localeCompare(a.at));
}

/** By local day, in the order given. */
function days(news: readonly News[]): [string, News[]][] {
  const found = new Map<string, News[]>();
  for (const each of news) {
    const day = new Date(new Date(each.at).setHours(0, 0, 0, 0)).toISOString();
    found.set(day, [...(found.get(day) ?? []), each]);
  }
  return [...found];
}

/** All of them, a batch at a time; what is no longer there is left out. */
async function read(ids: readonly string[], slugs: readonly string[], signal: AbortSignal): Promise<Followed> {
  const products: Detail[] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const operations = ids
      .slice(at, at + AT_ONCE)
      .map((each) => ({ method: "GET" as const, path: `/products/${each}`, body: null, headers: null }));
    const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, signal })).value;
    products.push(...results.filter((each) => each.status === 200).map((each) => each.body as unknown as Detail));
  }
  const publishers = await Promise.all(
    slugs.map(async (slug) => {
      const query = { org: slug, sort: "-updated_at" as const, limit: OF_PUBLISHER };
      const { items } = (await api.get("/api/v1/products", { query, signal })).value;
      return { slug, name: items[0]?.publisher.name ?? slug, products: items };
    }),
  );
  return { products, publishers };
}
