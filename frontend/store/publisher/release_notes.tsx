// The notes and the channel of a draft, with a preview; what is typed is kept in the tab until it is saved.
import { Button } from "../../shared/components/button";
import { FormErrors, Field, SelectField } from "../../shared/components/field";
import { translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { Markdown } from "../markdown";
import { errorOfField, idempotencyHeader, useSubmit } from "./form";
import { channelLabel, CHANNELS, type Release } from "./releases";
import type { useStoredInput } from "../stored_input";

const tStore = translator("store");
const t = translator("publisher");

export interface TypedNotes {
  notes: string;
  channel: Release["channel"];
}

interface Props {
  product: Schemas["ProductDetail"];
  release: Release;
  typing: ReturnType<typeof useStoredInput<TypedNotes>>;
  isUnsaved: boolean;
  reload: () => void;
  onSaved: () => void;
  onBack: () => void;
}

export function ReleaseNotes({ product, release, typing, isUnsaved, reload, onSaved, onBack }: Props) {
  const { value, change, forget, isRestored } = typing;
  const { isBusy, problem, run } = useSubmit();
  const body = { notes: value.notes || null, channel: value.channel };
  const save = () =>
    void run(async () => {
      if (isUnsaved) {
        const values = { id: product.id, version: release.version };
        await api.put("/api/v1/products/{id}/releases/{version}", { values, body, headers: idempotencyHeader() });
        reload();
      }
      forget();
      onSaved();
    });
  return (
    <form
      class="stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      {isRestored && isUnsaved && <p class="notice">{t("typing.restored")}</p>}
      <FormErrors problem={problem} />
      <div class="notes-editor">
        <div class="stack">
          <Field name="notes" label={t("notes")} help={t("markdown")} error={errorOfField(problem, "notes")}>
            {(controlAttributes) => <textarea {...controlAttributes} rows={12} value={value.notes} onInput={(event) => change({ ...value, notes: event.currentTarget.value })} />}
          </Field>
          <SelectField
            name="channel"
            label={tStore("channel")}
            value={value.channel}
            options={CHANNELS.map((channel) => [channel, channelLabel(channel)] as const)}
            onChange={(channel) => change({ ...value, channel: channel as Release["channel"] })}
          />
        </div>
        <div class="panel-box notes-preview" aria-label={t("notes.preview")} role="group">
          <p class="small quiet">{t("notes.preview")}</p>
          {value.notes ? <Markdown text={value.notes} heading="h3" /> : <p class="quiet">{t("notes.none")}</p>}
        </div>
      </div>
      <div class="row form-actions">
        <Button onClick={onBack}>{t("step.back")}</Button>
        <Button type="submit" variant="strong" busy={isBusy}>
          {isUnsaved ? t("step.save") : t("step.next")}
        </Button>
        <Curl method="PUT" path={`/api/v1/products/${product.slug}/releases/${encodeURIComponent(release.version)}`} body={body} />
      </div>
    </form>
  );
}
