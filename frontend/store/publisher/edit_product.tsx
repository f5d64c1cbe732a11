// The form that changes a product. If another person has changed it since, both versions are shown first.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { showToast } from "../../shared/toast";
import { go } from "../../shared/router";
import { api } from "../api";
import { Curl } from "../curl";
import { Conflict } from "./conflict";
import { idempotencyHeader, useSubmit } from "./form";
import { fetchProductState, type ProductState } from "./product_state";
import { ProductPreview } from "./product_preview";
import { useStoredInput } from "../stored_input";
import { withoutEmpty, requireProductFields, ProductForm, type ProductInput } from "./product_form";
import { translator } from "../../shared/i18n";

const tStore = translator("store");
const t = translator("publisher");

export function EditProduct({ product, etag, reload }: ProductState & { reload: () => void }) {
  const typing = useStoredInput(`product ${product.id}`, { input: toInput(product), base: etag });
  const { input: value, base } = typing.value;
  const setValue = (input: ProductInput) => typing.change({ input, base });
  const [serverState, setServerState] = useState<ProductState | null>(null);
  const { isBusy, problem, setProblem, run } = useSubmit();
  const values = { id: product.id };
  const save = (match: string) =>
    void run(async () => {
      requireProductFields(value);
      const headers = { ...idempotencyHeader(), "If-Match": match };
      const saved = await api.put("/api/v1/products/{id}", { values, body: withoutEmpty(value), headers });
      setServerState(null);
      typing.change({ input: value, base: saved.headers.get("etag") ?? (await fetchProductState(product.id)).etag });
      typing.forget();
      showToast(t("saved"));
      if (saved.value.slug === product.slug) {
        reload();
      } else {
        go(`/publisher/products/${saved.value.slug}?tab=details`, { replaces: true });
      }
    });
  const isConflict = problem?.status === 412;
  if (isConflict && serverState === null) {
    void fetchProductState(product.id).then(setServerState, () => setProblem(null));
  }
  const take = () => {
    if (serverState) {
      typing.change({ input: toInput(serverState.product), base: serverState.etag });
      typing.forget();
      setServerState(null);
      setProblem(null);
    }
  };
  return (
    <div class="stack">
      {typing.isRestored && (
        <p class="notice row" role="status">
          {t("typing.restored")}
          <Button
            tight
            onClick={() => {
              typing.change({ input: toInput(product), base: etag });
              typing.forget();
            }}
          >
            {t("typing.discard")}
          </Button>
        </p>
      )}
      {isConflict && serverState && (
        <Conflict ownInput={withoutEmpty(value)} serverInput={toInput(serverState.product)} onMine={() => save(serverState.etag)} onTheirs={take} />
      )}
      <div class="product-editor">
        <ProductForm value={value} problem={isConflict ? null : problem} onChange={setValue} onSend={() => save(base)}>
          <SelectField
            name="status"
            label={t("status")}
            value={value.status ?? product.status}
            options={(["draft", "public", "archived"] as const).map((status) => [status, tStore(`status.${status}`)])}
            onChange={(status) => setValue({ ...value, status: status as ProductState["product"]["status"] })}
          />
          <Button type="submit" variant="strong" busy={isBusy}>
            {t("save")}
          </Button>
          <Curl method="PUT" path={`/api/v1/products/${product.slug}`} body={withoutEmpty(value)} />
        </ProductForm>
        <ProductPreview value={value} known={product} />
      </div>
    </div>
  );
}

function toInput(product: ProductState["product"]): ProductInput {
  const { title, slug, kind, platforms, description, access, tags, license, homepage, status, summary, buy_url, languages } = product;
  return { title, slug, kind, platforms, description: description ?? null, access, tags, license, homepage, status, summary, buy_url, languages };
}
