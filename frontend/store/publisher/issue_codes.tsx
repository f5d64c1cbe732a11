// The form for new codes. They are shown once and can be saved as a file.
import { useState } from "preact/hooks";
import { Button, CopyButton } from "../../shared/components/button";
import { FormErrors, SelectField, TextField } from "../../shared/components/field";
import { send, urlFor } from "../../shared/client";
import { plural, translator } from "../../shared/i18n";
import { useRequest } from "../../shared/request";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { errorOfField, idempotencyHeader, requireFields, useSubmit } from "./form";


const t = translator("publisher");

type NewBatch = Schemas["NewBatch"];

interface IssuedCodes {
  codes: readonly string[];
  /** A blob URL of the CSV file. */
  csvUrl: string;
}

const MAX_SHOWN = 200;

export function IssueCodes({ org, onIssued }: { org: string; onIssued: () => void }) {
  const [products, setProducts] = useState("");
  const [kind, setKind] = useState<NewBatch["kind"]>("license");
  const [count, setCount] = useState("10");
  const [uses, setUses] = useState("100");
  const [expiryDay, setExpiryDay] = useState("");
  const [issuedCodes, setIssuedCodes] = useState<IssuedCodes | null>(null);
  const { isBusy, problem, run } = useSubmit();
  const body: NewBatch = {
    kind,
    count: Number(count),
    products: products.split(/[\s,]+/).filter(Boolean),
    max_uses: kind === "promo" ? Number(uses) : null,
    valid_from: null,
    expires_at: expiryDay ? new Date(`${expiryDay}T23:59:59`).toISOString() : null,
  };
  const path = urlFor("/api/v1/codes", {}, { org });
  const issue = () =>
    void run(async () => {
      requireFields({ products: [t("issue.products"), body.products] });
      const answer = await send("POST", path, { body, headers: { ...idempotencyHeader(), Accept: "text/csv, application/problem+json" } });
      const csv = await answer.blob();
      const codes = (await csv.text()).split(/\r?\n/).slice(1).filter(Boolean);
      setIssuedCodes({ codes, csvUrl: URL.createObjectURL(csv) });
      onIssued();
    });
  const textField = (name: "products" | "count" | "max_uses" | "expires_at", value: string, setText: (value: string) => void) => (
    <TextField
      name={name}
      label={t(`issue.${name}`)}
      {...(name === "products" ? { help: t("issue.products.help"), required: true } : {})}
      type={name === "expires_at" ? "date" : name === "products" ? "text" : "number"}
      value={value}
      error={errorOfField(problem, name)}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
  return (
    <details class="disclosure">
      <summary>{t("issue")}</summary>
      <form
        class="form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          issue();
        }}
      >
        <FormErrors problem={problem} />
        {textField("products", products, setProducts)}
        <ProductPicker org={org} chosen={body.products} onChange={(slugs) => setProducts(slugs.join(", "))} />
        <SelectField
          name="kind"
          label={t("codes.kind")}
          value={kind}
          options={[
            ["license", t("license")],
            ["promo", t("promo")],
          ]}
          onChange={(value) => setKind(value === "promo" ? "promo" : "license")}
        />
        {textField("count", count, setCount)}
        {kind === "promo" && textField("max_uses", uses, setUses)}
        {textField("expires_at", expiryDay, setExpiryDay)}
        <div class="row">
          <Button type="submit" variant="strong" busy={isBusy}>
            {t("issue")}
          </Button>
          <Curl method="POST" path={path} body={body} />
        </div>
      </form>
      {issuedCodes && <IssuedCodesList {...issuedCodes} />}
    </details>
  );
}

/** Checkboxes for the organisation's products. */
function ProductPicker({ org, chosen, onChange }: { org: string; chosen: readonly string[]; onChange: (slugs: readonly string[]) => void }) {
  const request = useRequest(async (signal) => (await api.get("/api/v1/products", { query: { org, limit: 100, sort: "title" }, signal })).value.items, [org]);
  return request.state === "loaded" && request.value.length > 0 ? (
    <fieldset class="product-picker">
      <legend>{t("issue.pick")}</legend>
      {request.value.map(({ slug, title }) => (
        <label class="check" key={slug}>
          <input
            type="checkbox"
            checked={chosen.includes(slug)}
            onChange={(event) => onChange(event.currentTarget.checked ? [...chosen, slug] : chosen.filter((other) => other !== slug))}
          />
          {title}
        </label>
      ))}
    </fieldset>
  ) : null;
}

function IssuedCodesList({ codes, csvUrl }: IssuedCodes) {
  return (
    <section class="stack" role="status">
      <h3>{plural(codes.length, t("issued.one"), t("issued.many"))}</h3>
      <p>{t("issued.once")}</p>
      <div class="row">
        <a class="button" href={csvUrl} download="codes.csv">
          {t("issued.csv")}
        </a>
        <CopyButton text={codes.join("\n")} name={t("codes")} />
      </div>
      <pre class="block" tabIndex={0}>
        {codes.slice(0, MAX_SHOWN).join("\n")}
        {codes.length > MAX_SHOWN ? "\n…" : ""}
      </pre>
    </section>
  );
}
