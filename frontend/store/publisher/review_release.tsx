// The last step before a release is published: what customers get, and what is still missing. Each missing item has a
// button that leads to the step where the publisher adds it.
import { Fragment } from "preact";
import { Button } from "../../shared/components/button";
import { FailureNotice } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { plural, size, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { Markdown } from "../markdown";
import { PLATFORMS } from "../platform";
import { idempotencyHeader, useSubmit } from "./form";
import { blockingFiles } from "./ready_to_publish";
import type { JobStates } from "./processing_job";
import type { Step } from "./publication_steps";
import { channelLabel, type Release } from "./releases";

const tStore = translator("store");
const t = translator("publisher");

interface Props {
  product: Schemas["ProductDetail"];
  release: Release;
  jobs: JobStates;
  isUnsaved: boolean;
  reload: () => void;
  onStep: (step: Step) => void;
}

/** What is missing, and the step where it is done. */
function missing({ release, jobs, isUnsaved }: Pick<Props, "release" | "jobs" | "isUnsaved">): [Step, string][] {
  const files = release.artifacts ?? [];
  const unready = files.filter((file) => file.status !== "ready");
  const unchecked = blockingFiles(release, jobs).filter((blockingFile) => !unready.includes(blockingFile));
  const joinNames = (files: readonly { filename: string }[]) => files.map((file) => file.filename).join(", ");
  const candidates: [Step, string | false][] = [
    ["files", !files.length && !release.notes_only && t("publish.empty")],
    ["files", unready.length > 0 && t("publish.unready", { files: joinNames(unready) })],
    ["checks", unchecked.length > 0 && t("review.unchecked", { files: joinNames(unchecked) })],
    ["notes", isUnsaved && t("notes.unsaved")],
  ];
  return candidates.filter((candidate): candidate is [Step, string] => candidate[1] !== false);
}

export function ReviewRelease({ product, release, jobs, isUnsaved, reload, onStep }: Props) {
  const { isBusy, problem, run } = useSubmit();
  const files = release.artifacts ?? [];
  const missingItems = missing({ release, jobs, isUnsaved });
  const platforms = [...new Set(files.flatMap((file) => (file.platform ? [PLATFORMS[file.platform] ?? file.platform] : [])))];
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  const facts: [string, string][] = [
    [t("version"), release.version],
    [tStore("channel"), channelLabel(release.channel)],
    [t("files"), `${plural(files.length, t("files.one"), t("files.n"))}, ${size(bytes)}`],
    [tStore("platform"), platforms.join(", ") || t("platform.none")],
  ];
  const publish = () =>
    void run(async () => {
      const values = { id: product.id, version: release.version };
      await api.post("/api/v1/products/{id}/releases/{version}/publish", { values, headers: idempotencyHeader() });
      showToast(t("release.published"));
      reload();
    });
  return (
    <>
      {missingItems.length > 0 && (
        <div class="notice stack">
          <strong>{t("review.missing")}</strong>
          <ul class="review-missing">
            {missingItems.map(([step, description]) => (
              <li key={description}>
                <span>{description}</span>
                <Button tight onClick={() => onStep(step)}>
                  {t(`step.${step}`)}
                </Button>
              </li>
            ))}
          </ul>
        </div>
      )}
      <div class="panel-box review-facts">
        <h3>{`${product.title} ${release.version}`}</h3>
        <dl class="facts">
          {facts.map(([name, description]) => (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>{description}</dd>
            </Fragment>
          ))}
        </dl>
        {release.notes ? <Markdown text={release.notes} heading="h4" /> : <p class="quiet">{t("notes.none")}</p>}
        <p>{t(product.status === "draft" ? "publish.first" : "publish.text", { channel: release.channel })}</p>
      </div>
      {problem && <FailureNotice problem={problem} />}
      <div class="row form-actions">
        <Button onClick={() => onStep("notes")}>{t("step.back")}</Button>
        <Button variant="strong" busy={isBusy} disabled={missingItems.length > 0} onClick={publish}>
          {t("publish")}
        </Button>
        <Curl method="POST" path={`/api/v1/products/${product.slug}/releases/${encodeURIComponent(release.version)}/publish`} />
      </div>
    </>
  );
}
