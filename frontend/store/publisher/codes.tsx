// Redemption codes of the organisation: the use of each batch, a form for new codes, and the revocation of a batch.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { urlFor } from "../../shared/client";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Dialog } from "../../shared/components/dialog";
import { RequestResult, Empty, FailureNotice } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { date, number, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { Bar } from "./share_bar";
import { idempotencyHeader, useSubmit } from "./form";
import { IssueCodes } from "./issue_codes";

const t = translator("publisher");

type Batch = Schemas["Batch"];
type Product = Schemas["ProductDetail"];

const AT_ONCE = 40;

export function Codes({ org }: { org: string }) {
  const request = useRequest(
    async (signal) => {
      const rows = (await api.get("/api/v1/codes", { query: { org, limit: 100 }, signal })).value;
      return { rows, named: await productsById(new Set(rows.flatMap((row) => row.products)), signal) };
    },
    [org],
    { keepsPrevious: true },
  );
  const [batchToRevoke, setBatchToRevoke] = useState<Batch | null>(null);
  return (
    <div class="stack">
      <IssueCodes org={org} onIssued={request.reload} />
      <RequestResult request={request}>
        {({ rows, named }) =>
          rows.length ? (
            <Table
              caption={t("codes.batches")}
              rows={rows}
              keyOf={(row) => row.batch_id}
              columns={[
                { name: "created", label: t("issued"), cell: (row) => date(row.created_at) },
                { name: "kind", label: t("codes.kind"), cell: (row) => t(row.kind === "promo" ? "promo" : "license") },
                { name: "products", label: t("issue.products"), cell: (row) => <ProductTitles products={row.products.map((id) => named.get(id))} /> },
                { name: "count", label: t("codes"), cell: (row) => number(row.count), isNumber: true },
                { name: "uses", label: t("codes.used"), cell: (row) => <UsedCodes batch={row} /> },
                { name: "until", label: t("until"), cell: (row) => (row.expires_at ? date(row.expires_at) : "–") },
                { name: "status", label: t("status"), cell: (row) => <Chip tone={row.status === "active" ? "good" : "bad"}>{t(row.status === "active" ? "active" : "revoked")}</Chip> },
                { name: "revoke", label: t("revoke"), cell: (row) => row.status === "active" && <EndBatch batch={row} onEnd={setBatchToRevoke} /> },
              ]}
            />
          ) : (
            <Empty title={t("codes.none")} />
          )
        }
      </RequestResult>
      <Revoking org={org} batch={batchToRevoke} onDone={() => (setBatchToRevoke(null), request.reload())} />
    </div>
  );
}

function ProductTitles({ products }: { products: readonly (Product | undefined)[] }) {
  const knownProducts = products.flatMap((product) => (product ? [product] : []));
  return (
    <ul class="facts-list">
      {knownProducts.map((product) => (
        <li key={product.id}>
          <a href={`/publisher/products/${product.slug}`}>{product.title}</a>
        </li>
      ))}
    </ul>
  );
}

/** The products with these ids, without deleted ones. */
async function productsById(ids: ReadonlySet<string>, signal: AbortSignal): Promise<Map<string, Product>> {
  const products = new Map<string, Product>();
  const remainingIds = [...ids];
  while (remainingIds.length) {
    const operations = remainingIds.splice(0, AT_ONCE).map((id) => ({ method: "GET" as const, path: `/products/${id}`, body: null, headers: null }));
    const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, signal })).value;
    for (const result of results.filter(({ status }) => status === 200)) {
      const product = result.body as unknown as Product;
      products.set(product.id, product);
    }
  }
  return products;
}

function UsedCodes({ batch }: { batch: Batch }) {
  const maxUses = batch.count * batch.max_uses;
  return (
    <span class="row">
      <Bar share={maxUses ? batch.uses / maxUses : 0} />
      {t("used.of", { uses: number(batch.uses), most: number(maxUses) })}
    </span>
  );
}

function EndBatch({ batch, onEnd }: { batch: Batch; onEnd: (batch: Batch) => void }) {
  return (
    <Button variant="risky" tight onClick={() => onEnd(batch)}>
      {t("revoke")} <span class="hidden-text">{batch.batch_id}</span>
    </Button>
  );
}

function Revoking({ org, batch, onDone }: { org: string; batch: Batch | null; onDone: () => void }) {
  const [takesBack, setTakesBack] = useState(false);
  const { isBusy, problem, run } = useSubmit();
  const revoking = urlFor("/api/v1/codes/{batch_id}/revoke", { batch_id: batch?.batch_id ?? "" }, { org });
  const revoke = () =>
    void run(async () => {
      const values = { batch_id: batch?.batch_id ?? "" };
      const body = { entitlements: takesBack };
      await api.post("/api/v1/codes/{batch_id}/revoke", { values, query: { org }, body, headers: idempotencyHeader() });
      showToast(t("revoked"));
      onDone();
    });
  return (
    <Dialog
      title={t("revoke.batch")}
      isOpen={batch !== null}
      onClose={onDone}
      actions={
        <>
          <Button variant="risky" busy={isBusy} onClick={revoke}>
            {t("revoke")}
          </Button>
          <Curl method="POST" path={revoking} body={{ entitlements: takesBack }} />
        </>
      }
    >
      <p>{t("revoke.text")}</p>
      <label class="check">
        <input type="checkbox" checked={takesBack} onChange={(event) => setTakesBack(event.currentTarget.checked)} />
        {t("revoke.back")}
      </label>
      {problem && <FailureNotice problem={problem} />}
    </Dialog>
  );
}
