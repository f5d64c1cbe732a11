// The page of a product: gallery, description, downloads or access, and all releases.
import { useRequest } from "../../shared/request";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { query } from "../../shared/router";
import { api, type Schemas } from "../api";
import { CoverImage } from "../card";
import { splitSummary, tagLabel } from "../catalog_item";
import { Markdown } from "../markdown";
import { AboutBuild } from "../product/about_build";
import { useBuildFacts } from "../product/build_facts";
import { Facts } from "../product/facts";
import { Files } from "../product/files";
import { Gallery } from "../product/gallery";
import { GetBar, GetPanel, useOffer } from "../product/get_product";
import { MoreLikeThis } from "../product/more_like_this";
import { ReleaseNotes } from "../product/release_notes";
import { translator } from "../../shared/i18n";

const t = translator("store");

type Detail = Schemas["ProductDetail"];
type Release = Schemas["Release"];

const CHANNELS: readonly string[] = ["stable", "beta", "nightly", "alpha"];

export function Product({ slug }: { slug: string }) {
  const values = { id: slug };
  const productRequest = useRequest(
    async (signal) => {
      const [product, releases] = await Promise.all([
        api.get("/api/v1/products/{id}", { values, signal }),
        api.get("/api/v1/products/{id}/releases", { values, signal }),
      ]);
      return { product: product.value, releases: releases.value as Release[] };
    },
    [slug],
  );
  if (productRequest.state === "failed" && productRequest.problem.status === 404) {
    return (
      <div class="wrap">
        <NotFound />
      </div>
    );
  }
  return (
    <div class="wrap">
      {productRequest.state === "failed" && <Heading title={slug} />}
      {productRequest.state === "loading" && <h1 class="hidden-text">{slug}</h1>}
      <RequestResult request={productRequest}>{(value) => <ProductContent {...value} />}</RequestResult>
    </div>
  );
}

function ProductContent({ product, releases }: { product: Detail; releases: Release[] }) {
  const published = releases.filter((release) => release.status !== "draft");
  const channels = CHANNELS.filter((channel) => published.some((release) => release.channel === channel));
  const channel = query.value.get("channel") ?? channels[0] ?? "";
  const offer = useOffer(product, published, channel);
  const buildFacts = useBuildFacts(product, offer);
  const icon = product.media.find((mediaItem) => mediaItem.kind === "icon");
  const [lead, rest] = splitSummary(product.summary);
  return (
    <article class="product-page">
      <div class="backdrop" aria-hidden="true">
        <CoverImage product={product} isFirst />
      </div>
      <div class="product">
        <div class="product-head">
          <Breadcrumb product={product} />
          <div class="row">
            {icon && <img class="product-icon" src={icon.url} alt={icon.alt} width={56} height={56} />}
            <Heading title={product.title}>{product.status !== "public" && <Chip tone="warn">{t(`status.${product.status}`)}</Chip>}</Heading>
          </div>
          {lead && <p class="subtitle">{lead}</p>}
        </div>
        <div class="product-main">
          <Gallery product={product} />
          <section aria-labelledby="about">
            <h2 id="about">{t("about")}</h2>
            {rest && <p class="prose about-lead">{rest}</p>}
            {product.description ? <Markdown text={product.description} heading="h3" /> : <p class="quiet">{t("about.none")}</p>}
            {product.tags.length > 0 && (
              <ul class="tags" aria-label={t("tags")}>
                {product.tags.map((tag) => (
                  <li key={tag}>
                    <a href={`/browse?tag=${encodeURIComponent(tag)}`}>{tagLabel(tag)}</a>
                  </li>
                ))}
              </ul>
            )}
          </section>
          <ReleaseNotes product={product} releases={published} channels={channels} channel={channel} offer={offer} />
          <AboutBuild key={channel} product={product} offer={offer} known={buildFacts} />
        </div>
        <aside class="product-side" aria-label={t("get")}>
          <GetPanel product={product} offer={offer} />
          <Files product={product} offer={offer} known={buildFacts} />
          <Facts product={product} offer={offer} releases={published} />
        </aside>
      </div>
      <MoreLikeThis product={product} />
      <GetBar product={product} offer={offer} />
    </article>
  );
}

function Breadcrumb({ product }: { product: Detail }) {
  const tag = product.tags[0];
  return (
    <nav class="breadcrumb" aria-label={t("breadcrumb")}>
      <a href={`/browse?kind=${product.kind}`}>{t(`kinds.${product.kind}`)}</a>
      {tag && (
        <>
          <Icon name="chevron-right" size="s" />
          <a href={`/browse?kind=${product.kind}&tag=${encodeURIComponent(tag)}`}>{tagLabel(tag)}</a>
        </>
      )}
      <Icon name="chevron-right" size="s" />
      <span aria-current="page">{product.title}</span>
    </nav>
  );
}
