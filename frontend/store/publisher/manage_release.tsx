// The publisher's page of one release: its files, their processing, and the actions publish, promote and yank.
import { useRequest } from "../../shared/request";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { translator } from "../../shared/i18n";
import { Markdown } from "../markdown";
import { fetchProductState, type ProductState } from "./product_state";
import { ProductArea, ProductPath } from "./publisher_area";
import { RequirePublisher } from "./require_publisher";
import { allReleases, channelLabel, previousRelease, type Release, ReleaseStatus } from "./releases";
import { ReleaseActions } from "./release_actions";
import { FileTable } from "./release_files";
import { ReleaseSteps } from "./release_steps";

const tStore = translator("store");
const t = translator("publisher");

export function ManageRelease({ slug, version }: { slug: string; version: string }) {
  const request = useRequest((signal) => fetchRelease(slug, version, signal), [slug, version], { keepsPrevious: true });
  if (request.state === "failed" && request.problem.status === 404) {
    return <NotFound />;
  }
  const title = request.state === "loaded" ? request.value.product.title : slug;
  const page = (
    <>
      <ProductPath product={{ slug, title }} current={version} />
      <Heading title={`${title} ${version}`}>
        {request.state === "loaded" && (
          <span class="row">
            <ReleaseStatus release={request.value.release} />
            <Chip plain>{channelLabel(request.value.release.channel)}</Chip>
          </span>
        )}
      </Heading>
      <RequirePublisher org={request.state === "loaded" ? request.value.product.org : undefined}>
        <RequestResult request={request}>{(value) => <LoadedRelease {...value} reload={request.reload} />}</RequestResult>
      </RequirePublisher>
    </>
  );
  const org = request.state === "loaded" ? request.value.product.org : undefined;
  return <ProductArea org={org}>{page}</ProductArea>;
}

interface ReleaseData {
  product: ProductState["product"];
  release: Release;
  previousRelease: Release | undefined;
}

function LoadedRelease({ product, release, previousRelease, reload }: ReleaseData & { reload: () => void }) {
  const actions = <ReleaseActions product={product} release={release} previousRelease={previousRelease} reload={reload} />;
  return release.status === "draft" ? (
    <div class="stack">
      <ReleaseSteps key={release.version} product={product} release={release} reload={reload} />
      {actions}
    </div>
  ) : (
    <div class="stack">
      {release.notes && <Markdown text={release.notes} heading="h2" />}
      {release.yank_reason && <p class="notice bad">{tStore("yanked", { reason: release.yank_reason })}</p>}
      {actions}
      <h2>{t("files")}</h2>
      <FileTable release={release} />
    </div>
  );
}

async function fetchRelease(slug: string, version: string, signal: AbortSignal): Promise<ReleaseData> {
  const [{ product }, releases] = await Promise.all([fetchProductState(slug, signal), allReleases(slug, signal)]);
  const release = releases.find((release) => release.version === version);
  if (!release) {
    throw new Problem(404, {});
  }
  return { product, release, previousRelease: previousRelease(release, releases) };
}
