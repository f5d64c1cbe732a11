// The release notes of a channel as a timeline, with the files of each release on demand.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Empty } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { setQuery } from "../../shared/router";
import { dateTime, number, sinceWhen, size, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { Markdown } from "../markdown";
import { currentPlatform } from "../platform";
import { updateTo } from "./build_facts";
import type { Offer } from "./get_product";
import { fileColumns } from "./release_files";

const t = translator("store");

const SHOWN = 4;
type Release = Schemas["Release"];

interface Props {
  product: Schemas["ProductDetail"];
  releases: readonly Release[];
  channels: readonly string[];
  channel: string;
  offer: Offer;
}

export function ReleaseNotes({ product, releases, channels, channel, offer }: Props) {
  const [isWhole, setWhole] = useState(false);
  const channelReleases = releases.filter((release) => release.channel === channel);
  const shownReleases = isWhole ? channelReleases : channelReleases.slice(0, SHOWN);
  return (
    <section aria-labelledby="releases">
      <div class="section-head">
        <h2 id="releases">{t("notes")}</h2>
        {channels.length > 1 && (
          <div class="segments" role="group" aria-label={t("channel")}>
            {channels.map((name) => (
              <button key={name} type="button" aria-pressed={name === channel} onClick={() => setQuery({ channel: name })}>
                {t(`channel.${name}` as "channel.stable")}
              </button>
            ))}
          </div>
        )}
      </div>
      {channelReleases.length ? (
        <ol class="releases">
          {shownReleases.map((release) => (
            <Entry key={release.version} product={product} release={release} isOwned={offer.isOwned === true} isLatest={release === offer.release} />
          ))}
        </ol>
      ) : (
        <Empty title={t("releases.none")} icon="package" />
      )}
      {channelReleases.length > shownReleases.length && <Button onClick={() => setWhole(true)}>{t("releases.all", { n: number(channelReleases.length) })}</Button>}
    </section>
  );
}

interface EntryProps {
  product: Schemas["ProductDetail"];
  release: Release;
  isOwned: boolean;
  isLatest: boolean;
}

function Entry({ product, release, isOwned, isLatest }: EntryProps) {
  const files = release.artifacts ?? [];
  const file = files.find((file) => file.platform === currentPlatform) ?? files[0];
  const update = updateTo(release, file);
  return (
    <li class={isLatest ? "release latest" : "release"}>
      <h3>
        {release.version}
        {isLatest && (
          <Chip tone="good" plain>
            {t("latest")}
          </Chip>
        )}
        {release.status === "yanked" && (
          <Chip tone="bad" plain>
            {t("withdrawn")}
          </Chip>
        )}
        {release.published_at && (
          <time dateTime={release.published_at} title={dateTime(release.published_at)}>
            {sinceWhen(release.published_at)}
          </time>
        )}
      </h3>
      {release.status === "yanked" && <p class="quiet">{t("withdrawn.by", { reason: release.yank_reason ?? "" })}</p>}
      {release.notes && <Markdown text={release.notes} />}
      {file && (
        <details class="release-files">
          <summary>
            <span class="quiet">{size(file.size)}</span>
            {update && <span class="quiet">{t("build.update.from", { version: update.from_version, size: size(update.size) })}</span>}
            <span class="link">
              {t("files.checksums")}
              <span class="hidden-text"> {release.version}</span>
            </span>
          </summary>
          <Table
            caption={`${product.title} ${release.version}`}
            rows={[...files].sort((a, b) => Number(b.platform === currentPlatform) - Number(a.platform === currentPlatform))}
            keyOf={(file) => file.id}
            columns={fileColumns(product, release, isOwned)}
          />
        </details>
      )}
    </li>
  );
}
