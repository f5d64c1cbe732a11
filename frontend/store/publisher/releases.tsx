// The releases of a product, drafts first, and the form for the next one.
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { FormErrors, Field, SelectField, TextField } from "../../shared/components/field";
import { RequestResult, Empty } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { go } from "../../shared/router";
import { date, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { CommandLine } from "../command_line";
import { Curl } from "../curl";
import { useStoredInput } from "../stored_input";
import { errorOfField, idempotencyHeader, requireFields, useSubmit } from "./form";


const tStore = translator("store");
const t = translator("publisher");

type Detail = Schemas["ProductDetail"];
type ReleaseInput = Schemas["NewRelease"];

/** A draft, or a published or yanked release. */
export type Release = Schemas["Release"] | (Schemas["Draft"] & { published_at?: never; yank_reason?: never });

export const CHANNELS = ["stable", "beta", "nightly", "alpha"] as const;

export function channelLabel(channel: string): string {
  return tStore(`channel.${channel}` as "channel.stable");
}

export function Releases({ product }: { product: Detail }) {
  const request = useRequest(
    (signal) => allReleases(product.id, signal),
    [product.id],
  );
  const addressOf = (release: Release) => `/publisher/products/${product.slug}/releases/${encodeURIComponent(release.version)}`;
  return (
    <div class="stack">
      <NewRelease product={product} />
      <RequestResult request={request}>
        {(rows) =>
          rows.length ? (
            <Table
              caption={tStore("releases")}
              rows={rows}
              keyOf={(row) => row.version}
              columns={[
                { name: "version", label: t("version"), cell: (row) => <a href={addressOf(row)}>{row.version}</a> },
                { name: "channel", label: tStore("channel"), cell: (row) => channelLabel(row.channel) },
                { name: "status", label: t("status"), cell: (row) => <ReleaseStatus release={row} /> },
                { name: "published", label: tStore("published"), cell: (row) => row.published_at && date(row.published_at) },
                { name: "former", label: t("roll.back.title"), cell: (row) => <RollBackLink release={previousRelease(row, rows)} at={addressOf(row)} /> },
                { name: "files", label: t("files"), cell: (row) => row.artifacts?.length ?? 0, isNumber: true },
              ]}
            />
          ) : (
            <Empty title={tStore("releases.none")} />
          )
        }
      </RequestResult>
    </div>
  );
}

/** The drafts of a product, then its releases, each newest first. */
export async function allReleases(id: string, signal: AbortSignal): Promise<Release[]> {
  // Request drafts first: a release that is published in between is then in at least one of the answers.
  const drafts = (await api.get("/api/v1/products/{id}/drafts", { values: { id }, signal })).value as Release[];
  const publishedReleases = (await api.get("/api/v1/products/{id}/releases", { values: { id }, signal })).value as Release[];
  const versions = new Set(publishedReleases.map((publishedRelease) => publishedRelease.version));
  return [...drafts.filter((draft) => !versions.has(draft.version)), ...publishedReleases];
}

/** The release that customers get if this one is yanked; undefined unless this one is the newest of its channel. */
export function previousRelease(release: Release, releases: readonly Release[]): Release | undefined {
  // In the order in which customers get them: newest first.
  const availableReleases = releases.filter((other) => other.channel === release.channel && other.status !== "draft" && other.status !== "yanked");
  return availableReleases[0]?.version === release.version ? availableReleases[1] : undefined;
}

/** A link to the page where the newest release of a channel can be yanked. */
function RollBackLink({ release, at }: { release: Release | undefined; at: string }) {
  return release ? <a href={at}>{t("roll.back", { version: release.version })}</a> : null;
}

export function ReleaseStatus({ release }: { release: Release }) {
  const status = release.status === "draft" || release.status === "yanked" ? release.status : "published";
  const tone = { draft: "warn", yanked: "bad", published: "good" } as const;
  return <Chip tone={tone[status]}>{t(`release.${status}`)}</Chip>;
}

const BLANK: ReleaseInput = { version: "", channel: "stable", notes: "", notes_only: false };

function NewRelease({ product }: { product: Detail }) {
  const { value, change: setValue, isRestored, forget } = useStoredInput<ReleaseInput>(`release of ${product.id}`, BLANK);
  const { isBusy, problem, run } = useSubmit();
  const path = `/api/v1/products/${product.slug}/releases`;
  const push = `countersign push PATH ${product.org}/${product.slug} --version ${value.version || "VERSION"} --channel ${value.channel} --publish`;
  const draft = () =>
    void run(async () => {
      requireFields({ version: [t("version"), value.version] });
      const body = { ...value, notes: value.notes || null };
      const reply = await api.post("/api/v1/products/{id}/releases", { values: { id: product.id }, body, headers: idempotencyHeader() });
      forget();
      go(`/publisher/products/${product.slug}/releases/${encodeURIComponent(reply.value.version)}`);
    });
  return (
    <details class="disclosure" open={isRestored}>
      <summary>{t("new.release")}</summary>
      <form
        class="form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          draft();
        }}
      >
        <FormErrors problem={problem} />
        <TextField
          name="version"
          label={t("version")}
          value={value.version}
          required
          maxLength={64}
          error={errorOfField(problem, "version")}
          onInput={(event) => setValue({ ...value, version: event.currentTarget.value })}
        />
        <SelectField
          name="channel"
          label={tStore("channel")}
          value={value.channel}
          options={CHANNELS.map((channel) => [channel, channelLabel(channel)] as const)}
          onChange={(channel) => setValue({ ...value, channel: channel as ReleaseInput["channel"] })}
        />
        <Field name="notes" label={t("notes")} help={t("markdown")} error={errorOfField(problem, "notes")}>
          {(controlAttributes) => (
            <textarea {...controlAttributes} value={value.notes ?? ""} onInput={(event) => setValue({ ...value, notes: event.currentTarget.value })} />
          )}
        </Field>
        <div class="row">
          <Button type="submit" variant="strong" busy={isBusy}>
            {t("draft")}
          </Button>
          <Curl method="POST" path={path} body={value} />
        </div>
        <CommandLine label={t("push")} text={push} />
      </form>
    </details>
  );
}
