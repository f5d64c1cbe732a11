// The tabs of a publisher's page: the latest releases of all products, and the keys that sign the current releases.
import { useState } from "preact/hooks";
import { useRequest } from "../shared/request";
import { Button, CopyButton } from "../shared/components/button";
import { Chip } from "../shared/components/chip";
import { Empty, RequestResult } from "../shared/components/states";
import { date, dateTime, sinceWhen, translator } from "../shared/i18n";
import { api, type Schemas } from "./api";
import { CoverImage } from "./card";
import { CommandLine } from "./command_line";
import { Markdown } from "./markdown";
import { statementOf } from "./product/provenance";

const t = translator("store");

type Product = Schemas["Product"];
type Release = Schemas["Release"];

const AT_ONCE = 40;
const OF_EACH = 10;
const MAX_SHOWN = 20;

/** The successful answers to one path for each product. */
async function fetchForEach<Body>(products: readonly Product[], path: string, signal: AbortSignal): Promise<{ product: Product; body: Body }[]> {
  const bodies: { product: Product; body: Body }[] = [];
  for (let start = 0; start < products.length; start += AT_ONCE) {
    const productBatch = products.slice(start, start + AT_ONCE);
    const operations = productBatch.map((product) => ({ method: "GET" as const, path: `/products/${product.id}${path}`, body: null, headers: null }));
    const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, signal })).value;
    results.forEach((result, index) => {
      const product = productBatch[index];
      if (result.status === 200 && product) {
        bodies.push({ product, body: result.body as unknown as Body });
      }
    });
  }
  return bodies;
}

export function PublisherReleases({ products }: { products: readonly Product[] }) {
  const [isWhole, setWhole] = useState(false);
  const releaseRequest = useRequest(
    async (signal) => {
      const releasePages = await fetchForEach<{ items: Release[] }>(products, `/releases?limit=${OF_EACH}`, signal);
      return releasePages
        .flatMap(({ product, body }) => body.items.filter((item) => item.published_at).map((release) => ({ product, release })))
        .sort((a, b) => (b.release.published_at ?? "").localeCompare(a.release.published_at ?? ""));
    },
    [products],
  );
  return (
    <RequestResult request={releaseRequest}>
      {(releases) => (
        <>
          {!releases.length && <Empty title={t("releases.none")} icon="package" />}
          <ol class="releases publisher-releases">
            {releases.slice(0, isWhole ? undefined : MAX_SHOWN).map(({ product, release }, index) => (
              <li key={`${product.id} ${release.version} ${release.channel}`} class={index ? "release" : "release latest"}>
                <CoverImage product={product} sizes="128px" />
                <div>
                  <h2>
                    <a href={`/products/${product.slug}`}>
                      {product.title} {release.version}
                    </a>
                    {release.channel !== "stable" && <Chip tone="violet">{t(`channel.${release.channel}` as "channel.beta")}</Chip>}
                    {release.status === "yanked" && <Chip tone="bad">{t("withdrawn")}</Chip>}
                    <time dateTime={release.published_at ?? ""} title={dateTime(release.published_at ?? "")}>
                      {sinceWhen(release.published_at ?? "")}
                    </time>
                  </h2>
                  {release.notes && <Markdown text={release.notes} heading="h3" />}
                </div>
              </li>
            ))}
          </ol>
          {!isWhole && releases.length > MAX_SHOWN && <Button onClick={() => setWhole(true)}>{t("publisher.releases.all")}</Button>}
        </>
      )}
    </RequestResult>
  );
}

interface AboutProps {
  publisher: Schemas["Publisher"];
  products: readonly Product[];
}

export function PublisherKeys({ publisher, products }: AboutProps) {
  const keyRequest = useRequest(
    async (signal) => {
      const keys = new Map<string, { titles: string[]; until: string }>();
      for (const { product, body } of await fetchForEach<Schemas["ChannelState"]>(products, "/channels/stable", signal)) {
        const { expires_at } = statementOf(body.statement);
        for (const { keyid } of body.statement.signatures) {
          const key = keys.get(keyid) ?? { titles: [], until: "" };
          keys.set(keyid, { titles: [...key.titles, product.title], until: key.until > expires_at ? key.until : expires_at });
        }
      }
      return [...keys];
    },
    [products],
  );
  const [firstProduct] = products;
  return (
    <div class="publisher-keys">
      <section aria-labelledby="publisher-about">
        <h2 id="publisher-about">{t("about")}</h2>
        <p class="prose written">{publisher.text ?? t("publisher.text.none")}</p>
        <dl class="panel-box fact-list">
          {publisher.website && (
            <div>
              <dt>{t("homepage")}</dt>
              <dd>
                <a href={publisher.website} rel="noopener noreferrer nofollow ugc">
                  {publisher.website.replace(/^https?:\/\/(www\.)?|\/$/g, "")}
                </a>
              </dd>
            </div>
          )}
          <div>
            <dt>{t("publisher.joined")}</dt>
            <dd>{date(publisher.since)}</dd>
          </div>
          <div>
            <dt>{t("publisher.domain")}</dt>
            <dd>{publisher.verified ? t("publisher.verified") : t("publisher.unverified")}</dd>
          </div>
        </dl>
      </section>
      <section aria-labelledby="publisher-keys">
        <h2 id="publisher-keys">{t("publisher.signing")}</h2>
        <RequestResult request={keyRequest}>
          {(keys) =>
            keys.length ? (
              <>
                <p class="prose">{t("publisher.signing.text")}</p>
                <ul class="panel-box key-list">
                  {keys.map(([keyid, { titles, until }]) => (
                    <li key={keyid}>
                      <span class="row">
                        <code class="hash" title={keyid}>
                          {keyid}
                        </code>
                        <CopyButton text={keyid} name={t("signed.key")} />
                      </span>
                      <span class="quiet small">{t("publisher.signing.of", { titles: titles.join(", "), until: date(until) })}</span>
                    </li>
                  ))}
                </ul>
              </>
            ) : (
              <p class="quiet">{t("publisher.signing.none")}</p>
            )
          }
        </RequestResult>
        {firstProduct && keyRequest.state === "loaded" && keyRequest.value.length > 0 && (
          <CommandLine label={t("signed.check")} text={`countersign pull ${publisher.slug}/${firstProduct.slug} ./${firstProduct.slug} --verify`} />
        )}
      </section>
    </div>
  );
}
