// One product: what it is, how to have it, and every release of every channel.
import { useRequest } from "../../shared/request";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult, Empty } from "../../shared/components/states";
import { Tabs } from "../../shared/components/tabs";
import { setQuery, query } from "../../shared/router";
import { api, type Schemas } from "../api";
import { Markdown } from "../markdown";
import { useOwnsProduct } from "../ownership";
import { Facts } from "../product/facts";
import { Follow } from "../product/follow";
import { Gallery } from "../product/gallery";
import { GetProduct } from "../product/get_product";
import { Provenance } from "../product/provenance";
import { ReleaseDetails } from "../product/release_details";
import { translator } from "../../shared/i18n";

const t = translator("store");

type Detail = Schemas["ProductDetail"];
type Release = Schemas["Release"];

const CHANNELS: readonly string[] = ["stable", "beta", "nightly", "alpha"];

export function Product({ slug }: { slug: string }) {
  const values = { id: slug };
  const found = useRequest(
    async (signal) => {
      const [product, releases] = await Promise.all([
        api.get("/api/v1/products/{id}", { values, signal }),
        api.get("/api/v1/products/{id}/releases", { values, signal }),
      ]);
      return { product: product.value, releases: releases.value as Release[] };
    },
    [slug],
  );
  if (found.state === "failed" && found.problem.status === 404) {
    return <NotFound />;
  }
  return (
    <>
      {found.state === "failed" && <Heading title={slug} />}
      {found.state === "loading" && <h1 class="hidden-text">{slug}</h1>}
      <RequestResult of={found}>{(value) => <Shown {...value} />}</RequestResult>
    </>
  );
}

function Shown({ product, releases }: { product: Detail; releases: Release[] }) {
  const isOwned = useOwnsProduct(product);
  const published = releases.filter((each) => each.status !== "draft");
  const channels = CHANNELS.filter((each) => published.some((release) => release.channel === each));
  const chosen = query.value.get("channel") ?? channels[0] ?? "";
  const icon = product.media.find((each) => each.kind === "icon");
  return (
    <article class="product">
      <div>
        {icon && <img class="icon" src={icon.url} alt={icon.alt} width={72} height={72} />}
        <Heading title={product.title}>
          <span class="row">
            <Chip>{t(`kind.${product.kind}`)}</Chip>
            <Chip tone={product.access === "free" ? "good" : undefined}>{t(product.access)}</Chip>
            {product.status !== "public" && <Chip tone="warn">{t(`status.${product.status}`)}</Chip>}
          </span>
        </Heading>
        {product.description && <Markdown text={product.description} />}
      </div>
      <Gallery media={product.media} />
      <GetProduct product={product} releases={published} channel={chosen} isOwned={isOwned} />
      <Follow product={product} />
      <Facts product={product} />
      <section class="stack" aria-labelledby="releases">
        <h2 id="releases">{t("releases")}</h2>
        {channels.length ? (
          <Tabs
            label={t("channel")}
            chosen={chosen}
            onChoose={(channel) => setQuery({ channel })}
            tabs={channels.map((channel) => ({
              name: channel,
              label: channel,
              content: () => <Channel {...{ channel, releases: published, product, isOwned }} />,
            }))}
          />
        ) : (
          <Empty title={t("releases.none")} />
        )}
      </section>
    </article>
  );
}

interface InChannel {
  channel: string;
  releases: readonly Release[];
  product: Detail;
  isOwned: boolean | null;
}

function Channel({ channel, releases, product, isOwned }: InChannel) {
  const found = releases.filter((each) => each.channel === channel);
  return (
    <div class="stack">
      <Provenance key={channel} product={product} channel={channel} />
      {found.map((each) => (
        <ReleaseDetails key={each.version} release={each} product={product} isOwned={isOwned === true} />
      ))}
    </div>
  );
}
