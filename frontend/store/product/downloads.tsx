// The newest files of an owned product. The browser downloads them.
import { useRequest } from "../../shared/request";
import { RequestResult } from "../../shared/components/states";
import { size, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { currentPlatform, PLATFORMS } from "../platform";
import { recordDownload } from "../downloaded_versions";

const t = translator("store");

type Release = Schemas["Release"];

export function Files({ id }: { id: string }) {
  const releasesRequest = useRequest(
    async (signal) => (await api.get("/api/v1/products/{id}/releases", { values: { id }, query: { limit: 10 }, signal })).value as Release[],
    [id],
  );
  return (
    <RequestResult request={releasesRequest}>
      {(releases) => {
        const release = releases.find((candidate) => candidate.channel === "stable" && candidate.status !== "yanked") ?? releases[0];
        const files = [...(release?.artifacts ?? [])].sort((a, b) => Number(b.platform === currentPlatform) - Number(a.platform === currentPlatform));
        return files.length ? (
          <ul class="file-links">
            {files.map((file) => (
              <li key={file.id}>
                <a href={`/api/v1/artifacts/${file.id}`} download onClick={() => release && void recordDownload(id, release, file.platform)}>
                  {file.filename}
                </a>{" "}
                <span class="small quiet">
                  {release?.version} · {file.platform ? `${PLATFORMS[file.platform]} · ` : ""}
                  {size(file.size)}
                </span>
              </li>
            ))}
          </ul>
        ) : (
          <p>{t("releases.none")}</p>
        );
      }}
    </RequestResult>
  );
}
