// The organisation's products and drafts with their states.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { RequestResult, Empty, Failed } from "../../shared/components/states";
import { sinceWhen, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { CoverImage } from "../card";
import { PlatformMarks } from "../platform_marks";
import { useSubmit } from "./form";

const tCommon = translator("common");
const tStore = translator("store");
const t = translator("publisher");

type Detail = Schemas["ProductDetail"];

interface Page {
  items: readonly Detail[];
  next: string | null;
}

const PAGE = 40;

export function Products({ org }: { org: string }) {
  const firstPage = useRequest((signal) => fetchPage(org, null, signal), [org]);
  return <RequestResult of={firstPage}>{(page) => <Listed org={org} first={page} />}</RequestResult>;
}

function Listed({ org, first }: { org: string; first: Page }) {
  const [pages, setPages] = useState<readonly Page[]>([first]);
  const { isBusy, problem, run } = useSubmit();
  const rows = pages.flatMap((each) => each.items);
  const next = pages.at(-1)?.next ?? null;
  const more = () => void run(async () => setPages([...pages, await fetchPage(org, next)]));
  if (!rows.length) {
    return (
      <Empty title={t("products.none")}>
        <p>{t("products.none.text")}</p>
      </Empty>
    );
  }
  return (
    <div class="stack">
      <ul class="cards own-products" aria-label={t("products.of", { org })}>
        {rows.map((each, place) => (
          <OwnProduct key={each.id} product={each} isFirst={place < 10} />
        ))}
      </ul>
      {problem && <Failed problem={problem} onRetry={more} />}
      {next && (
        <div>
          <Button busy={isBusy} onClick={more}>
            {tCommon("more")}
          </Button>
        </div>
      )}
    </div>
  );
}

function OwnProduct({ product, isFirst }: { product: Detail; isFirst: boolean }) {
  return (
    <li class="card">
      <div class="cover">
        <CoverImage product={product} sizes="(max-width: 760px) 50vw, 260px" isFirst={isFirst} />
      </div>
      <h2>
        <a class="cut" href={`/publisher/products/${product.slug}`}>
          {product.title}
        </a>
      </h2>
      <p class="by cut">{[tStore(`kind.${product.kind}`), t("updated.at", { when: sinceWhen(product.updated_at) })].join(" · ")}</p>
      <p class="meta">
        <Newest of={product} />
        <Status of={product.status} />
      </p>
      <p class="meta">
        <PlatformMarks platforms={product.platforms} />
      </p>
    </li>
  );
}

export function Status({ of }: { of: Detail["status"] }) {
  return <Chip tone={of === "public" ? "good" : of === "draft" ? "warn" : undefined}>{tStore(`status.${of}`)}</Chip>;
}

/** The newest version in the most stable channel. */
function Newest({ of }: { of: Detail }) {
  const [newest] = of.channels;
  return newest ? (
    <span class="whole">
      {newest.version} <span class="small quiet">{newest.channel}</span>
    </span>
  ) : (
    <span />
  );
}

/** Load a page of products with details. Lists do not contain the state, so the details are loaded in one batch. */
async function fetchPage(org: string, cursor: string | null, signal?: AbortSignal): Promise<Page> {
  const aborted = signal ? { signal } : {};
  const query = { org, limit: PAGE, ...(cursor ? { cursor } : {}) };
  const { items, next_cursor } = (await api.get("/api/v1/products", { query, ...aborted })).value;
  if (!items.length) {
    return { items: [], next: null };
  }
  const operations = items.map((each) => ({ method: "GET" as const, path: `/products/${each.id}`, body: null, headers: null }));
  const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, ...aborted })).value;
  // Omit products that were deleted in between.
  const products = results.filter((each) => each.status === 200).map((each) => each.body as unknown as Detail);
  return { items: products, next: next_cursor };
}
