// One product: what it is, the right download first, and every release of every channel.
import { useAsked } from "../../shared/asked";
import { Copy, LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { Missing } from "../../shared/components/shell";
import { Answer, Empty } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { Tabs } from "../../shared/components/tabs";
import { ask, query } from "../../shared/router";
import { date, moment, size } from "../../shared/words";
import { api, type Schemas } from "../api";
import { here, PLATFORMS } from "../platform";
import { say } from "../say";

type Detail = Schemas["ProductDetail"];
type Release = Schemas["Release"];
type File = Schemas["Artifact"];

export function Product({ slug }: { slug: string }) {
  const values = { id: slug };
  const found = useAsked(
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
    return <Missing />;
  }
  return <Answer of={found}>{(value) => <Shown {...value} />}</Answer>;
}

function Shown({ product, releases }: { product: Detail; releases: Release[] }) {
  const channels = [...new Set(releases.map((each) => each.channel))];
  const order = ["stable", "beta", "nightly", "alpha"];
  channels.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const chosen = query.value.get("channel") ?? channels[0] ?? "";
  return (
    <article class="product">
      <div>
        <Heading title={product.title}>
          <span class="row">
            <Chip>{say(`kind.${product.kind}`)}</Chip>
            <Chip tone={product.access === "free" ? "good" : undefined}>{say(product.access)}</Chip>
          </span>
        </Heading>
        <p class="lead">{product.description}</p>
      </div>
      <Facts product={product} />
      {product.access === "entitled" && <p class="notice">{say("entitled.text")}</p>}
      <section class="stack" aria-labelledby="releases">
        <h2 id="releases">{say("releases")}</h2>
        {channels.length ? (
          <Tabs
            label={say("channel")}
            chosen={chosen}
            onChoose={(channel) => ask({ channel })}
            tabs={channels.map((channel) => ({
              name: channel,
              label: channel,
              content: () => (
                <div class="stack">
                  {releases
                    .filter((each) => each.channel === channel)
                    .map((each) => (
                      <OfRelease key={each.version} release={each} product={product} />
                    ))}
                </div>
              ),
            }))}
          />
        ) : (
          <Empty title={say("releases.none")} />
        )}
      </section>
    </article>
  );
}

function Facts({ product }: { product: Detail }) {
  return (
    <dl class="facts">
      <dt>{say("maker")}</dt>
      <dd>
        <a href={`/?org=${product.org}`}>{product.org}</a>
      </dd>
      <dt>{say("platform")}</dt>
      <dd>{product.platforms.map((each) => PLATFORMS[each]).join(", ")}</dd>
      {product.license && (
        <>
          <dt>{say("license")}</dt>
          <dd>{product.license}</dd>
        </>
      )}
      {product.homepage && (
        <>
          <dt>{say("homepage")}</dt>
          <dd>
            <a href={product.homepage} rel="noopener noreferrer nofollow">
              {product.homepage}
            </a>
          </dd>
        </>
      )}
      {product.tags.length > 0 && (
        <>
          <dt>{say("tags")}</dt>
          <dd class="row">
            {product.tags.map((each) => (
              <a key={each} href={`/?tag=${encodeURIComponent(each)}`}>
                {each}
              </a>
            ))}
          </dd>
        </>
      )}
    </dl>
  );
}

function OfRelease({ release, product }: { release: Release; product: Detail }) {
  const files = [...(release.artifacts ?? [])].sort((a, b) => Number(b.platform === here) - Number(a.platform === here));
  const command = `countersign pull ${product.org}/${product.slug}:${release.channel} .`;
  return (
    <section class="stack" aria-label={release.version}>
      <h3 class="row">
        {release.version}
        {release.published_at && (
          <time class="small quiet" dateTime={release.published_at} title={moment(release.published_at)}>
            {date(release.published_at)}
          </time>
        )}
        {release.status === "yanked" && <Chip tone="bad">{say("yanked", { reason: release.yank_reason ?? "" })}</Chip>}
      </h3>
      {release.notes && <p>{release.notes}</p>}
      {files.length > 0 && (
        <Table
          caption={`${product.title} ${release.version}`}
          rows={files}
          keyOf={(file) => file.id}
          columns={[
            { name: "file", label: say("file"), cell: (file) => file.filename },
            { name: "platform", label: say("platform"), cell: (file) => <ForPlatform file={file} /> },
            { name: "size", label: say("size"), cell: (file) => size(file.size), isNumber: true },
            { name: "sha256", label: "SHA-256", cell: (file) => <Digest file={file} /> },
            { name: "download", label: say("download"), cell: (file) => <Download file={file} /> },
          ]}
        />
      )}
      <div class="row small">
        <span class="quiet">{say("pull")}:</span> <code>{command}</code> <Copy text={command} of={say("pull")} />
      </div>
    </section>
  );
}

function ForPlatform({ file }: { file: File }) {
  return (
    <span class="row">
      {file.platform && PLATFORMS[file.platform]}
      {file.platform === here && <Chip tone="good">{say("for.you")}</Chip>}
    </span>
  );
}

function Digest({ file }: { file: File }) {
  return file.sha256 ? (
    <span class="row">
      <code class="hash">{file.sha256}</code> <Copy text={file.sha256} of={`SHA-256 ${file.filename}`} />
    </span>
  ) : null;
}

function Download({ file }: { file: File }) {
  return (
    <LinkButton tight download href={`/api/v1/artifacts/${file.id}`}>
      {say("download")} <span class="hidden-text">{file.filename}</span>
    </LinkButton>
  );
}
