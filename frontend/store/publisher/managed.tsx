// One product as its publisher sees it: what is said of it, its pictures, its releases.
import { useAsked } from "../../shared/asked";
import { Heading } from "../../shared/components/heading";
import { Missing } from "../../shared/components/shell";
import { Answer } from "../../shared/components/states";
import { Tabs } from "../../shared/components/tabs";
import { ask, query } from "../../shared/router";
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
  const found = useAsked((signal) => known(slug, signal), [slug], { keeps: true });
  if (found.state === "failed" && found.problem.status === 404) {
    return <Missing />;
  }
  return (
    <>
      <p class="small">
        <a href="/publisher">{tStore("publisher")}</a>
      </p>
      <Heading title={found.state === "there" ? found.value.product.title : slug}>
        {found.state === "there" && (
          <span class="row">
            <Status of={found.value.product.status} />
            <a href={`/products/${slug}`}>{t("as.seen")}</a>
          </span>
        )}
      </Heading>
      <Publishers org={found.state === "there" ? found.value.product.org : undefined}>
        <Answer of={found}>{(value) => <Tabbed {...value} again={found.again} />}</Answer>
      </Publishers>
    </>
  );
}

function Tabbed({ product, etag, again }: Known & { again: () => void }) {
  return (
    <Tabs
      label={product.title}
      chosen={query.value.get("tab") ?? "releases"}
      onChoose={(tab) => ask({ tab })}
      tabs={[
        { name: "releases", label: tStore("releases"), content: () => <Releases product={product} /> },
        { name: "details", label: t("details"), content: () => <Details key={product.id} product={product} etag={etag} again={again} /> },
        { name: "media", label: tStore("media"), content: () => <Media product={product} again={again} /> },
      ]}
    />
  );
}
