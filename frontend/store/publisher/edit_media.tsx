// The pictures and videos of a product: upload with a text alternative, and removal.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { SelectField, TextField } from "../../shared/components/field";
import { Empty, FailureNotice } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { api, type Schemas } from "../api";
import { idempotencyHeader, useSubmit } from "./form";
import { Curl } from "../curl";
import { FileDrop } from "./file_drop";
import { pathOf, upload } from "./chunked_upload";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

type Detail = Schemas["ProductDetail"];
type Kind = Schemas["NewMedia"]["kind"];

const KINDS = ["screenshot", "cover", "icon", "video"] as const;

export function EditMedia({ product, reload }: { product: Detail; reload: () => void }) {
  const [kind, setKind] = useState<Kind>("screenshot");
  const [alt, setAlt] = useState("");
  const { isBusy, problem, setProblem, run } = useSubmit();
  const values = { id: product.id };
  const add = (files: readonly File[]) => {
    const file = files[0];
    if (!alt.trim()) {
      setProblem(new Problem(400, { detail: t("alt.missing"), errors: [{ pointer: "#/alt", detail: t("alt.missing") }] }));
    } else if (file) {
      void run(async () => {
        const body = { kind, filename: file.name, size: file.size, alt: alt.trim() };
        const announced = await api.post("/api/v1/products/{id}/media", { values, body, headers: idempotencyHeader() });
        await upload(pathOf(announced.value.upload_url), file, new AbortController().signal, () => undefined);
        setAlt("");
        showToast(t("media.added"));
        reload();
      });
    }
  };
  const remove = (id: string) =>
    void run(async () => {
      await api.delete("/api/v1/products/{id}/media/{media_id}", { values: { ...values, media_id: id }, headers: idempotencyHeader() });
      reload();
    });
  return (
    <div class="stack">
      <div class="form">
        <SelectField
          name="kind"
          label={t("media.kind")}
          value={kind}
          options={KINDS.map((kind) => [kind, t(`media.${kind}`)] as const)}
          onChange={(value) => setKind(value as Kind)}
        />
        <TextField
          name="alt"
          label={t("alt")}
          help={t("alt.help")}
          value={alt}
          required
          error={problem?.fieldErrors.find((error) => error.field === "alt")?.detail}
          onInput={(event) => setAlt(event.currentTarget.value)}
        />
        <FileDrop hint={isBusy ? t("uploading") : t("media.drop")} accept="image/*,video/mp4,video/webm" onFiles={add} />
        {problem && <FailureNotice problem={problem} />}
      </div>
      {product.media.length ? (
        <ul class="cards">
          {product.media.map((medium) => (
            <li key={medium.id} class="card plain">
              {medium.kind === "video" ? (
                <video src={medium.url} controls preload="metadata" aria-label={medium.alt} />
              ) : (
                <img src={medium.url} alt={medium.alt} />
              )}
              <p>
                {t(`media.${medium.kind}`)}: {medium.alt}
              </p>
              <span class="row">
                <Button variant="risky" tight onClick={() => remove(medium.id)}>
                  {t("remove")} <span class="hidden-text">{medium.alt}</span>
                </Button>
                <Curl method="DELETE" path={`/api/v1/products/${product.slug}/media/${medium.id}`} />
              </span>
            </li>
          ))}
        </ul>
      ) : (
        <Empty title={t("media.none")} />
      )}
    </div>
  );
}
