// The page for a new product. It starts as a draft that only its organisation sees.
import { Button } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { go } from "../../shared/router";
import { api } from "../api";
import { Curl } from "../curl";
import { idempotencyHeader, useSubmit } from "./form";
import { currentOrg } from "./org";
import { withoutEmpty, requireProductFields, ProductForm, type ProductInput } from "./product_form";
import { ProductPreview } from "./product_preview";
import { PublisherArea } from "./publisher_area";
import { RequirePublisher } from "./require_publisher";
import { useStoredInput } from "../stored_input";
import { isPublisher } from "../me";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

const BLANK: ProductInput = {
  title: "",
  slug: "",
  kind: "game",
  platforms: [],
  access: "entitled",
  tags: [],
  description: null,
  homepage: null,
  license: null,
  status: null,
  summary: null,
  buy_url: null,
  languages: [],
};

export function NewProduct() {
  return (
    <>
      {!isPublisher.value && <Heading title={t("new.product")} />}
      <RequirePublisher>
        <PublisherArea org={currentOrg()} current="products">
          <Heading title={t("new.product")} />
          <NewProductForm />
        </PublisherArea>
      </RequirePublisher>
    </>
  );
}

function NewProductForm() {
  const typing = useStoredInput("new product", { input: BLANK, isNamed: false });
  const { input: value, isNamed } = typing.value;
  const { isBusy, problem, run } = useSubmit();
  const change = (newValue: ProductInput) => {
    // The slug is derived from the title until the person edits the slug.
    const isOwn = isNamed || newValue.slug !== value.slug;
    typing.change({ input: isOwn ? newValue : { ...newValue, slug: slugOf(newValue.title) }, isNamed: isOwn });
  };
  const create = () =>
    void run(async () => {
      requireProductFields(value);
      const reply = await api.post("/api/v1/products", { query: { org: currentOrg() }, body: withoutEmpty(value), headers: idempotencyHeader() });
      typing.forget();
      go(`/publisher/products/${reply.value.slug}`);
    });
  return (
    <div class="stack">
      <p>{t("new.product.text")}</p>
      <div class="product-editor">
        <ProductForm value={value} problem={problem} onChange={change} onSend={create}>
          <Button type="submit" variant="strong" busy={isBusy}>
            {t("create")}
          </Button>
          <Curl method="POST" path={`/api/v1/products?org=${encodeURIComponent(currentOrg())}`} body={withoutEmpty(value)} />
        </ProductForm>
        <ProductPreview value={value} known={{ org: currentOrg() }} />
      </div>
    </div>
  );
}

function slugOf(title: string): string {
  const ascii = title.toLowerCase().normalize("NFKD").replace(/ß/g, "ss").replace(/[\u0300-\u036f]/g, "");
  return ascii.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
}
