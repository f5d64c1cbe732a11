// The page for a new product. It starts as a draft that only its organisation sees.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { go } from "../../shared/router";
import { api } from "../api";
import { Curl } from "../curl";
import { idempotencyHeader, useSubmit } from "./form";
import { currentOrg, OrgChoice } from "./org";
import { withoutEmpty, requireProductFields, ProductForm, type ProductInput } from "./product_form";
import { RequirePublisher } from "./require_publisher";
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
      <Heading title={t("new.product")} />
      <RequirePublisher>
        <Blank />
      </RequirePublisher>
    </>
  );
}

function Blank() {
  const [value, setValue] = useState<ProductInput>(BLANK);
  const [isNamed, setNamed] = useState(false);
  const { isBusy, problem, run } = useSubmit();
  const change = (next: ProductInput) => {
    // The address follows the title until somebody writes one of their own.
    const isOwn = isNamed || next.slug !== value.slug;
    setNamed(isOwn);
    setValue(isOwn ? next : { ...next, slug: slugOf(next.title) });
  };
  const create = () =>
    void run(async () => {
      requireProductFields(value);
      const made = await api.post("/api/v1/products", { query: { org: currentOrg() }, body: withoutEmpty(value), headers: idempotencyHeader() });
      go(`/publisher/products/${made.value.slug}`);
    });
  return (
    <div class="stack">
      <p>{t("new.product.text")}</p>
      <div>
        <OrgChoice />
      </div>
      <ProductForm value={value} problem={problem} onChange={change} onSend={create}>
        <Button type="submit" look="strong" busy={isBusy}>
          {t("create")}
        </Button>
        <Curl method="POST" path={`/api/v1/products?org=${encodeURIComponent(currentOrg())}`} body={withoutEmpty(value)} />
      </ProductForm>
    </div>
  );
}

function slugOf(title: string): string {
  const plain = title.toLowerCase().normalize("NFKD").replace(/ß/g, "ss").replace(/[\u0300-\u036f]/g, "");
  return plain.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
}
