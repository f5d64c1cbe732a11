// The form of a new or existing product. Errors are shown at the field and above the form.
import type { ComponentChildren } from "preact";
import { Field, FormErrors, SelectField, TextField } from "../../shared/components/field";
import type { Problem } from "../../shared/problem";
import type { Schemas } from "../api";
import { PLATFORMS, type Platform } from "../platform";
import { errorOfField, requireFields } from "./form";

import { translator } from "../../shared/i18n";

const tCommon = translator("common");
const tStore = translator("store");
const t = translator("publisher");

export type ProductInput = Schemas["ProductWrite"];

interface Props {
  value: ProductInput;
  problem: Problem | null;
  onChange: (value: ProductInput) => void;
  onSend: () => void;
  children: ComponentChildren;
}

export function ProductForm({ value, problem, onChange, onSend, children }: Props) {
  const setFields = (change: Partial<ProductInput>) => onChange({ ...value, ...change });
  const text = (name: "title" | "slug" | "license" | "homepage" | "summary" | "buy_url", help?: string) => (
    <TextField
      name={name}
      label={name === "license" || name === "homepage" ? tStore(name) : t(name)}
      {...(help ? { help } : {})}
      value={value[name] ?? ""}
      required={name === "title" || name === "slug"}
      error={errorOfField(problem, name)}
      onInput={(event) => setFields({ [name]: event.currentTarget.value })}
    />
  );
  const check = (name: Platform, isOn: boolean) =>
    setFields({ platforms: isOn ? [...value.platforms, name] : value.platforms.filter((other) => other !== name) });
  const submit = (event: Event) => {
    event.preventDefault();
    onSend();
  };
  return (
    <form class="form product-form" onSubmit={submit} noValidate>
      <FormErrors problem={problem} />
      <section class="panel-box form-section" aria-labelledby="basics">
        <h2 id="basics">{t("form.basics")}</h2>
        {text("title")}
        {text("summary", t("summary.help"))}
        {text("slug", t("slug.help"))}
        <SelectField
          name="kind"
          label={tStore("kind")}
          value={value.kind}
          options={(["game", "app", "tool"] as const).map((kind) => [kind, tStore(`kind.${kind}`)])}
          onChange={(kind) => setFields({ kind: kind as ProductInput["kind"] })}
        />
        <fieldset id="platforms" tabIndex={-1} aria-describedby={errorOfField(problem, "platforms") ? "platforms-fault" : undefined}>
          <legend>
            {tStore("platform")}
            <span class="quiet"> ({tCommon("required")})</span>
          </legend>
          <div class="row">
            {(Object.keys(PLATFORMS) as Platform[]).map((platform) => (
              <label class="check" key={platform}>
                <input
                  type="checkbox"
                  checked={value.platforms.includes(platform)}
                  onChange={(event) => check(platform, event.currentTarget.checked)}
                />
                {PLATFORMS[platform]}
              </label>
            ))}
          </div>
          {errorOfField(problem, "platforms") && (
            <span class="fault" id="platforms-fault">
              {errorOfField(problem, "platforms")}
            </span>
          )}
        </fieldset>
        <Field name="description" label={t("description")} help={t("markdown")} error={errorOfField(problem, "description")}>
          {(controlAttributes) => (
            <textarea
              {...controlAttributes}
              rows={6}
              value={value.description ?? ""}
              onInput={(event) => setFields({ description: event.currentTarget.value })}
            />
          )}
        </Field>
      </section>
      <section class="panel-box form-section" aria-labelledby="selling">
        <h2 id="selling">{t("form.access")}</h2>
        <SelectField
          name="access"
          label={t("access")}
          value={value.access ?? "entitled"}
          options={[
            ["entitled", tStore("entitled")],
            ["free", tStore("free")],
          ]}
          onChange={(access) => setFields({ access: access === "free" ? "free" : "entitled" })}
        />
        {text("buy_url", t("buy_url.help"))}
      </section>
      <section class="panel-box form-section" aria-labelledby="finding">
        <h2 id="finding">{t("form.finding")}</h2>
        <TextField
          name="tags"
          label={tStore("tags")}
          help={t("tags.help")}
          value={(value.tags ?? []).join(", ")}
          error={errorOfField(problem, "tags")}
          onInput={(event) => setFields({ tags: event.currentTarget.value.split(",").map((part) => part.trim()) })}
        />
        {text("license")}
        {text("homepage")}
      </section>
      <div class="row form-actions">{children}</div>
    </form>
  );
}

/** Check the required fields of a product. @throws Problem if one is empty. */
export function requireProductFields({ title, slug, platforms }: ProductInput): void {
  requireFields({ title: [t("title"), title], slug: [t("slug"), slug], platforms: [tStore("platform"), platforms] });
}

/** The value to send, without empty members. */
export function withoutEmpty(value: ProductInput): ProductInput {
  return {
    ...value,
    description: value.description || null,
    homepage: value.homepage || null,
    license: value.license || null,
    summary: value.summary?.trim() || null,
    buy_url: value.buy_url || null,
    tags: [...new Set((value.tags ?? []).filter(Boolean))],
  };
}
