// The dialog before a release is published: what customers get, and what is still missing.
import { Fragment } from "preact";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Failed } from "../../shared/components/states";
import type { Problem } from "../../shared/problem";
import { plural, size, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { PLATFORMS } from "../platform";
import type { Release } from "./releases";

const tStore = translator("store");
const t = translator("publisher");

interface Props {
  product: Schemas["ProductDetail"];
  release: Release;
  problem: Problem | null;
  isOpen: boolean;
  isBusy: boolean;
  onPublish: () => void;
  onClose: () => void;
}

/** Why the release cannot be published as it is; null where it can. */
function missing(release: Release): string | null {
  const files = release.artifacts ?? [];
  if (files.length === 0) {
    return release.notes_only ? null : t("publish.empty");
  }
  const unready = files.filter((each) => each.status !== "ready").map((each) => each.filename);
  return unready.length ? t("publish.unready", { files: unready.join(", ") }) : null;
}

export function PublishDialog({ product, release, problem, isOpen, isBusy, onPublish, onClose }: Props) {
  const files = release.artifacts ?? [];
  const why = missing(release);
  const platforms = [...new Set(files.flatMap((each) => (each.platform ? [PLATFORMS[each.platform] ?? each.platform] : [])))];
  const bytes = files.reduce((sum, each) => sum + each.size, 0);
  const facts: [string, string][] = [
    [t("version"), release.version],
    [tStore("channel"), release.channel],
    [t("files"), `${plural(files.length, t("files.one"), t("files.n"))}, ${size(bytes)}`],
    [tStore("platform"), platforms.join(", ") || t("platform.none")],
    [t("notes"), release.notes || t("notes.none")],
  ];
  return (
    <Dialog
      title={t("publish.title", { product: product.title, version: release.version })}
      isOpen={isOpen}
      onClose={onClose}
      actions={
        why === null && (
          <Button look="strong" busy={isBusy} onClick={onPublish}>
            {t("publish")}
          </Button>
        )
      }
    >
      {why !== null ? (
        <p class="notice bad">{why}</p>
      ) : (
        <>
          <dl class="facts">
            {facts.map(([name, words]) => (
              <Fragment key={name}>
                <dt>{name}</dt>
                <dd>{words}</dd>
              </Fragment>
            ))}
          </dl>
          <p>{t(product.status === "draft" ? "publish.first" : "publish.text", { channel: release.channel })}</p>
        </>
      )}
      {problem && <Failed problem={problem} />}
    </Dialog>
  );
}
