// The organisation's products and drafts with their states.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { RequestResult, Empty, FailureNotice } from "../../shared/components/states";
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

const PAGE_SIZE = 40;

export function Products({ org }: { org: string }) {
  const firstPage = useRequest((signal) => fetchPage(org, null, signal), [org]);
  return <RequestResult request={firstPage}>{(page) => <ProductRows org={org} firstPage={page} />}</RequestResult>;
}

function ProductRows({ org, firstPage }: { org: string; firstPage: Page }) {
  const [pages, setPages] = useState<readonly Page[]>([firstPage]);
  const { isBusy, problem, run } = useSubmit();
  const rows = pages.flatMap((page) => page.items);
  const nextCursor = pages.at(-1)?.next ?? null;
  const loadMore = () => void run(async () => setPages([...pages, await fetchPage(org, nextCursor)]));
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
        {rows.map((row, index) => (
          <OwnProduct key={row.id} product={row} isFirst={index < 10} />
        ))}
      </ul>
      {problem && <FailureNotice problem={problem} onRetry={loadMore} />}
      {nextCursor && (
        <div>
          <Button busy={isBusy} onClick={loadMore}>
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
        <NewestVersion product={product} />
        <Status status={product.status} />
      </p>
      <p class="meta">
        <PlatformMarks platforms={product.platforms} />
      </p>
    </li>
  );
}

export function Status({ status }: { status: Detail["status"] }) {
  return <Chip tone={status === "public" ? "good" : status === "draft" ? "warn" : undefined}>{tStore(`status.${status}`)}</Chip>;
}

/** The newest version in the most stable channel. */
function NewestVersion({ product }: { product: Detail }) {
  const [newestRelease] = product.channels;
  return newestRelease ? (
    <span class="whole">
      {newestRelease.version} <span class="small quiet">{newestRelease.channel}</span>
    </span>
  ) : (
    <span />
  );
}

/** Load a page of products with details. Lists do not contain the state, so the details are loaded in one batch. */
async function fetchPage(org: string, cursor: string | null, signal?: AbortSignal): Promise<Page> {
  const aborted = signal ? { signal } : {};
  const query = { org, limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
  const { items, next_cursor } = (await api.get("/api/v1/products", { query, ...aborted })).value;
  if (!items.length) {
    return { items: [], next: null };
  }
  const operations = items.map((item) => ({ method: "GET" as const, path: `/products/${item.id}`, body: null, headers: null }));
  const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, ...aborted })).value;
  // Omit products that were deleted in between.
  const products = results.filter((result) => result.status === 200).map((result) => result.body as unknown as Detail);
  return { items: products, next: next_cursor };
}
