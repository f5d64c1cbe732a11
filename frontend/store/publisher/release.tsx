// One release on its way: its files, what the store makes of them, and the steps to publish, promote or yank it.
import { useRequest } from "../../shared/request";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult, Empty } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { Problem } from "../../shared/problem";
import { size, translator } from "../../shared/i18n";
import { Markdown } from "../markdown";
import { PLATFORMS } from "../platform";
import { known, type Known } from "./known";
import { Publishers } from "./publishers";
import { allReleases, formerOf, type Release, ReleaseStatus } from "./releases";
import { Sending } from "./sending";
import { Steps } from "./steps";

const tStore = translator("store");
const t = translator("publisher");

export function ManagedRelease({ slug, version }: { slug: string; version: string }) {
  const found = useRequest((signal) => read(slug, version, signal), [slug, version], { keepsPrevious: true });
  if (found.state === "failed" && found.problem.status === 404) {
    return <NotFound />;
  }
  return (
    <>
      <p class="small">
        <a href="/publisher">{tStore("publisher")}</a> / <a href={`/publisher/products/${slug}`}>{slug}</a>
      </p>
      <Heading title={`${slug} ${version}`}>
        {found.state === "loaded" && (
          <span class="row">
            <ReleaseStatus of={found.value.release} />
            {found.value.release.channel}
          </span>
        )}
      </Heading>
      <Publishers org={found.state === "loaded" ? found.value.product.org : undefined}>
        <RequestResult of={found}>{(value) => <Shown {...value} reload={found.reload} />}</RequestResult>
      </Publishers>
    </>
  );
}

interface Found {
  product: Known["product"];
  release: Release;
  former: Release | undefined;
}

function Shown({ product, release, former, reload }: Found & { reload: () => void }) {
  const files = release.artifacts ?? [];
  return (
    <div class="stack">
      {release.notes && <Markdown text={release.notes} />}
      {release.yank_reason && <p class="notice bad">{tStore("yanked", { reason: release.yank_reason })}</p>}
      <Steps product={product} release={release} former={former} reload={reload} />
      <h2>{t("files")}</h2>
      {files.length ? (
        <Table
          caption={t("files.of", { version: release.version })}
          rows={files}
          keyOf={(each) => each.id}
          columns={[
            { name: "file", label: tStore("file"), cell: (each) => <a href={`/api/v1/artifacts/${each.id}`} download>{each.filename}</a> },
            { name: "platform", label: tStore("platform"), cell: (each) => each.platform && PLATFORMS[each.platform] },
            { name: "size", label: tStore("size"), cell: (each) => size(each.size), isNumber: true },
            { name: "status", label: t("status"), cell: (each) => each.status },
            { name: "sha256", label: "SHA-256", cell: (each) => <code class="hash">{each.sha256}</code> },
          ]}
        />
      ) : (
        <Empty title={t("files.none")} />
      )}
      {release.status === "draft" && <Sending product={product} release={release} reload={reload} />}
    </div>
  );
}

async function read(slug: string, version: string, signal: AbortSignal): Promise<Found> {
  const [{ product }, all] = await Promise.all([known(slug, signal), allReleases(slug, signal)]);
  const release = all.find((each) => each.version === version);
  if (!release) {
    throw new Problem(404, {});
  }
  return { product, release, former: formerOf(release, all) };
}
