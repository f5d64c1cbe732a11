// One release: when, what is new, its files, and how to check that a file is what was published.
import { CopyButton, LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Table } from "../../shared/components/table";
import { relativePast, dateTime, size, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { Markdown } from "../markdown";
import { currentPlatform, PLATFORMS, type Platform } from "../platform";
import { recordDownload } from "../product_notes";

const t = translator("store");

type File = Schemas["Artifact"];

interface Props {
  release: Schemas["Release"];
  product: Schemas["ProductDetail"];
  isOwned: boolean;
}

export function ReleaseDetails({ release, product, isOwned }: Props) {
  const files = [...(release.artifacts ?? [])].sort((a, b) => Number(b.platform === currentPlatform) - Number(a.platform === currentPlatform));
  const columns = [
    { name: "file", label: t("file"), cell: (file: File) => file.filename },
    { name: "platform", label: t("platform"), cell: (file: File) => <ForPlatform file={file} /> },
    { name: "size", label: t("size"), cell: (file: File) => size(file.size), isNumber: true },
    { name: "sha256", label: "SHA-256", cell: (file: File) => <Digest file={file} /> },
  ];
  const download = {
    name: "download",
    label: t("download"),
    cell: (file: File) => <Download file={file} onPress={() => recordDownload(product.id, release)} />,
  };
  return (
    <section class="release stack" aria-label={release.version}>
      <h3 class="row">
        {release.version}
        {release.published_at && (
          <time class="small quiet" dateTime={release.published_at}>
            {dateTime(release.published_at)} ({relativePast(release.published_at)})
          </time>
        )}
        {release.status === "yanked" && <Chip tone="bad">{t("yanked", { reason: release.yank_reason ?? "" })}</Chip>}
      </h3>
      {release.notes && <Markdown text={release.notes} />}
      {files.length > 0 && (
        <Table
          caption={`${product.title} ${release.version}`}
          rows={files}
          keyOf={(file) => file.id}
          columns={isOwned ? [...columns, download] : columns}
        />
      )}
    </section>
  );
}

function ForPlatform({ file }: { file: File }) {
  return (
    <span class="row">
      {file.platform && PLATFORMS[file.platform]}
      {file.platform === currentPlatform && <Chip tone="good">{t("for.you")}</Chip>}
    </span>
  );
}

function Digest({ file }: { file: File }) {
  if (!file.sha256) {
    return null;
  }
  return (
    <span class="row">
      <code class="hash" title={file.sha256}>
        {file.sha256}
      </code>
      <CopyButton text={file.sha256} of={`SHA-256 ${file.filename}`} />
      <CopyButton text={checksumCommand(file.filename, file.sha256, currentPlatform)} of={t("verify.of", { file: file.filename })} label={t("verify")} />
    </span>
  );
}

/** The command by which this system compares a downloaded file with its digest. */
export function checksumCommand(filename: string, sha256: string, on: Platform): string {
  if (on === "windows") {
    return `(Get-FileHash '${filename.replace(/'/g, "''")}').Hash -eq '${sha256}'`;
  }
  const line = `${sha256}  ${filename}`.replace(/'/g, "'\\''");
  return `echo '${line}' | ${on === "macos" ? "shasum -a 256" : "sha256sum"} -c`;
}

function Download({ file, onPress }: { file: File; onPress: () => void }) {
  return (
    <LinkButton tight download href={`/api/v1/artifacts/${file.id}`} onClick={onPress}>
      {t("download")} <span class="hidden-text">{file.filename}</span>
    </LinkButton>
  );
}
