// A product that is not there yet: it begins as a draft, which nobody else sees.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { go } from "../../shared/router";
import { api } from "../api";
import { Curl } from "../curl";
import { once, useDoing } from "./doing";
import { org, OrgChoice } from "./org";
import { cleaned, complete, ProductForm, type Written } from "./product_form";
import { Publishers } from "./publishers";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

const BLANK: Written = {
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
};

export function NewProduct() {
  return (
    <>
      <Heading title={t("new.product")} />
      <Publishers>
        <Blank />
      </Publishers>
    </>
  );
}

function Blank() {
  const [value, setValue] = useState<Written>(BLANK);
  const [isNamed, setNamed] = useState(false);
  const { isBusy, problem, run } = useDoing();
  const change = (next: Written) => {
    // The address follows the title until somebody writes one of their own.
    const isOwn = isNamed || next.slug !== value.slug;
    setNamed(isOwn);
    setValue(isOwn ? next : { ...next, slug: slugOf(next.title) });
  };
  const create = () =>
    void run(async () => {
      complete(value);
      const made = await api.post("/api/v1/products", { query: { org: org() }, body: cleaned(value), headers: once() });
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
        <Curl method="POST" path={`/api/v1/products?org=${encodeURIComponent(org())}`} body={cleaned(value)} />
      </ProductForm>
    </div>
  );
}

function slugOf(title: string): string {
  const plain = title.toLowerCase().normalize("NFKD").replace(/ß/g, "ss").replace(/[\u0300-\u036f]/g, "");
  return plain.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
}
