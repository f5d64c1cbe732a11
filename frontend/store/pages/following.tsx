// News of followed products and publishers by day, and the list of what the person follows.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button, LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { RequestResult, Empty } from "../../shared/components/states";
import { dateTime, longDay, relativePast, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { CoverImage, publisherOf } from "../card";
import { follow } from "../follow_publisher";
import { Monogram } from "../monogram";
import { feedUrl, followProduct } from "../product/follow";
import { RequireSignIn } from "../require_sign_in";
import "../following.css";

const tLibrary = translator("library");
const t = translator("store");

type Product = Schemas["Product"];
type Follow = Schemas["FollowItem"];

const OF_PUBLISHER = 12;

interface News {
  product: Product;
  at: string;
  isNew: boolean;
}

interface Followed {
  follows: readonly Follow[];
  /** The products of each followed publisher, by its slug. */
  published: Readonly<Record<string, readonly Product[]>>;
}

export function Following() {
  return (
    <div class="wrap">
      <Heading title={t("following")} />
      <RequireSignIn>
        <NewsFeed />
      </RequireSignIn>
    </div>
  );
}

function NewsFeed() {
  const followsRequest = useRequest(read, []);
  const [ended, setEnded] = useState<ReadonlySet<string>>(new Set());
  return (
    <RequestResult request={followsRequest}>
      {({ follows, published }) => {
        const remaining = follows.filter((follow) => !ended.has(keyOf(follow)));
        if (!remaining.length) {
          return (
            <Empty title={tLibrary("following.none")} icon="heart">
              <p>{tLibrary("following.none.text")}</p>
              <LinkButton href="/browse">{t("browse")}</LinkButton>
            </Empty>
          );
        }
        return (
          <div class="following">
            <div>
              {days(newsOf({ follows: remaining, published })).map(([day, news]) => (
                <section key={day} class="feed-day" aria-label={longDay(new Date(day))}>
                  <h2>{longDay(new Date(day))}</h2>
                  <ul class="panel-box">
                    {news.map((newsItem) => (
                      <Entry key={newsItem.product.id} news={newsItem} />
                    ))}
                  </ul>
                </section>
              ))}
            </div>
            <Side follows={remaining} onEnd={(follow) => setEnded(new Set([...ended, keyOf(follow)]))} />
          </div>
        );
      }}
    </RequestResult>
  );
}

const keyOf = ({ target }: Follow) => `${target.type} ${target.slug}`;

function Entry({ news: { product, at, isNew } }: { news: News }) {
  const { version, channel } = product.latest ?? { version: "", channel: "stable" };
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

/** The followed products and publishers, with buttons to unfollow. */
function Side({ follows, onEnd }: { follows: readonly Follow[]; onEnd: (follow: Follow) => void }) {
  const end = (followed: Follow) => {
    onEnd(followed);
    void (followed.product ? followProduct(followed.product.id, false) : follow(followed.target.slug, false));
  };
  return (
    <aside class="panel-box followed" aria-label={tLibrary("followed")}>
      <h2>{tLibrary("followed")}</h2>
      <ul>
        {follows.map((follow) => {
          const { product, target } = follow;
          return (
            <li key={keyOf(follow)}>
              {product ? <CoverImage product={product} sizes="64px" /> : <Monogram slug={target.slug} name={target.name} />}
              <span class="grow">
                <a class="cut" href={`/${product ? "products" : "publishers"}/${target.slug}`}>
                  {target.name}
                </a>
                {product && (
                  <a class="small quiet" href={feedUrl(product)} type="application/atom+xml">
                    {tLibrary("feed")} <span class="hidden-text">{target.name}</span>
                  </a>
                )}
              </span>
              <Button tight onClick={() => end(follow)}>
                {tLibrary("following.end")} <span class="hidden-text">{target.name}</span>
              </Button>
            </li>
          );
        })}
      </ul>
      <p class="small quiet">{tLibrary("following.text")}</p>
    </aside>
  );
}

/** The newest releases of followed products and of followed publishers' latest products, newest first. */
function newsOf({ follows, published }: Followed): News[] {
  const newsOf = (product: Product, isNew: boolean): News[] => (product.latest ? [{ product, at: product.latest.published_at, isNew }] : []);
  const productNews = follows.flatMap(({ product, unseen }) => (product ? newsOf(product, unseen > 0) : []));
  const productIds = new Set(productNews.map((follow) => follow.product.id));
  const publisherNews = follows
    .filter(({ target }) => target.type === "org")
    .flatMap(({ target, since, unseen }) =>
      (published[target.slug] ?? []).flatMap((release, place) =>
        productIds.has(release.id) ? [] : newsOf(release, place < unseen && (release.latest?.published_at ?? "") > since),
      ),
    );
  return [...productNews, ...publisherNews].sort((a, b) => b.at.localeCompare(a.at));
}

/** Group the news by local day, in the given order. */
function days(news: readonly News[]): [string, News[]][] {
  const newsByDay = new Map<string, News[]>();
  for (const newsItem of news) {
    const day = new Date(new Date(newsItem.at).setHours(0, 0, 0, 0)).toISOString();
    newsByDay.set(day, [...(newsByDay.get(day) ?? []), newsItem]);
  }
  return [...newsByDay];
}

/** Load what is followed, and the latest products of each followed publisher. */
async function read(signal: AbortSignal): Promise<Followed> {
  const follows = (await api.get("/api/v1/me/follows", { signal })).value.items;
  const slugs = follows.filter(({ target }) => target.type === "org").map(({ target }) => target.slug);
  const published = await Promise.all(
    slugs.map(async (org) => {
      const query = { org, sort: "-updated_at" as const, limit: OF_PUBLISHER };
      return [org, (await api.get("/api/v1/products", { query, signal })).value.items] as const;
    }),
  );
  return { follows, published: Object.fromEntries(published) };
}
