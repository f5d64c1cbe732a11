// Change what is said of a product. Where somebody else has changed it meanwhile, both versions are shown first.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { showToast } from "../../shared/toast";
import { go } from "../../shared/router";
import { api } from "../api";
import { Curl } from "../curl";
import { Conflict } from "./conflict";
import { once, useDoing } from "./doing";
import { known, type Known } from "./known";
import { cleaned, complete, ProductForm, type Written } from "./product_form";
import { translator } from "../../shared/i18n";

const tStore = translator("store");
const t = translator("publisher");

export function Details({ product, etag, reload }: Known & { reload: () => void }) {
  const [value, setValue] = useState<Written>(written(product));
  const [base, setBase] = useState(etag);
  const [theirs, setTheirs] = useState<Known | null>(null);
  const { isBusy, problem, setProblem, run } = useDoing();
  const values = { id: product.id };
  const save = (match: string) =>
    void run(async () => {
      complete(value);
      const headers = { ...once(), "If-Match": match };
      const saved = await api.put("/api/v1/products/{id}", { values, body: cleaned(value), headers });
      setTheirs(null);
      setBase(saved.headers.get("etag") ?? (await known(product.id)).etag);
      showToast(t("saved"));
      if (saved.value.slug === product.slug) {
        reload();
      } else {
        go(`/publisher/products/${saved.value.slug}?tab=details`, { replaces: true });
      }
    });
  const isConflict = problem?.status === 412;
  if (isConflict && theirs === null) {
    void known(product.id).then(setTheirs, () => setProblem(null));
  }
  const take = () => {
    if (theirs) {
      setValue(written(theirs.product));
      setBase(theirs.etag);
      setTheirs(null);
      setProblem(null);
    }
  };
  return (
    <div class="stack">
      {isConflict && theirs && (
        <Conflict mine={cleaned(value)} theirs={written(theirs.product)} onMine={() => save(theirs.etag)} onTheirs={take} />
      )}
      <ProductForm value={value} problem={isConflict ? null : problem} onChange={setValue} onSend={() => save(base)}>
        <SelectField
          name="status"
          label={t("status")}
          value={value.status ?? product.status}
          options={(["draft", "public", "archived"] as const).map((each) => [each, tStore(`status.${each}`)])}
          onChange={(status) => setValue({ ...value, status: status as Known["product"]["status"] })}
        />
        <Button type="submit" look="strong" busy={isBusy}>
          {t("save")}
        </Button>
        <Curl method="PUT" path={`/api/v1/products/${product.slug}`} body={cleaned(value)} />
      </ProductForm>
    </div>
  );
}

function written(product: Known["product"]): Written {
  const { title, slug, kind, platforms, description, access, tags, license, homepage, status } = product;
  return { title, slug, kind, platforms, description: description ?? null, access, tags, license, homepage, status };
}
