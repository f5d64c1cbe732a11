// One product as its publisher sees it: what is said of it, its pictures, its releases.
import { useRequest } from "../../shared/request";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { Tabs } from "../../shared/components/tabs";
import { setQuery, query } from "../../shared/router";
import { Details } from "./details";
import { known, type Known } from "./known";
import { Media } from "./media";
import { Status } from "./products";
import { Publishers } from "./publishers";
import { Releases } from "./releases";
import { translator } from "../../shared/i18n";

const tStore = translator("store");
const t = translator("publisher");

export function Managed({ slug }: { slug: string }) {
  const found = useRequest((signal) => known(slug, signal), [slug], { keepsPrevious: true });
  if (found.state === "failed" && found.problem.status === 404) {
    return <NotFound />;
  }
  return (
    <>
      <p class="small">
        <a href="/publisher">{tStore("publisher")}</a>
      </p>
      <Heading title={found.state === "loaded" ? found.value.product.title : slug}>
        {found.state === "loaded" && (
          <span class="row">
            <Status of={found.value.product.status} />
            <a href={`/products/${slug}`}>{t("as.seen")}</a>
          </span>
        )}
      </Heading>
      <Publishers org={found.state === "loaded" ? found.value.product.org : undefined}>
        <RequestResult of={found}>{(value) => <Tabbed {...value} reload={found.reload} />}</RequestResult>
      </Publishers>
    </>
  );
}

function Tabbed({ product, etag, reload }: Known & { reload: () => void }) {
  return (
    <Tabs
      label={product.title}
      chosen={query.value.get("tab") ?? "releases"}
      onChoose={(tab) => setQuery({ tab })}
      tabs={[
        { name: "releases", label: tStore("releases"), content: () => <Releases product={product} /> },
        { name: "details", label: t("details"), content: () => <Details key={product.id} product={product} etag={etag} reload={reload} /> },
        { name: "media", label: tStore("media"), content: () => <Media product={product} reload={reload} /> },
      ]}
    />
  );
}
