// The columns of the table of a release's files.
import { CopyButton, LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import type { Column } from "../../shared/components/table";
import { size, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { currentPlatform, PLATFORMS } from "../platform";
import { recordDownload } from "../downloaded_versions";
import { checksumCommand } from "./files";

const t = translator("store");

type File = Schemas["Artifact"];

export function fileColumns(product: { id: string }, release: Schemas["Release"], isOwned: boolean): Column<File>[] {
  const columns: Column<File>[] = [
    { name: "file", label: t("file"), cell: (file) => file.filename },
    { name: "platform", label: t("platform"), cell: (file) => <ForPlatform file={file} /> },
    { name: "size", label: t("size"), cell: (file) => size(file.size), isNumber: true },
    { name: "sha256", label: "SHA-256", cell: (file) => <Digest file={file} /> },
  ];
  const download: Column<File> = {
    name: "download",
    label: t("download"),
    cell: (file) => (
      <LinkButton tight download href={`/api/v1/artifacts/${file.id}`} onClick={() => void recordDownload(product.id, release, file.platform)}>
        {t("download")} <span class="hidden-text">{file.filename}</span>
      </LinkButton>
    ),
  };
  return isOwned ? [...columns, download] : columns;
}

function ForPlatform({ file }: { file: File }) {
  return (
    <span class="row">
      {file.platform && PLATFORMS[file.platform]}
      {file.platform === currentPlatform && (
        <Chip tone="good" plain>
          {t("for.you")}
        </Chip>
      )}
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
      <CopyButton text={file.sha256} name={`SHA-256 ${file.filename}`} />
      <CopyButton text={checksumCommand(file.filename, file.sha256, currentPlatform)} name={t("verify.of", { file: file.filename })} label={t("verify")} />
    </span>
  );
}
