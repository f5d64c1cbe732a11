// The files of a release: each with its platform, size, state and digest.
import { Chip } from "../../shared/components/chip";
import { Empty } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { size, translator } from "../../shared/i18n";
import { PLATFORMS } from "../platform";
import type { Release } from "./releases";

const tStore = translator("store");
const t = translator("publisher");

export function FileTable({ release }: { release: Release }) {
  const files = release.artifacts ?? [];
  return files.length ? (
    <Table
      caption={t("files.of", { version: release.version })}
      rows={files}
      keyOf={(file) => file.id}
      columns={[
        { name: "file", label: tStore("file"), cell: (file) => <a href={`/api/v1/artifacts/${file.id}`} download>{file.filename}</a> },
        { name: "platform", label: tStore("platform"), cell: (file) => file.platform && PLATFORMS[file.platform] },
        { name: "size", label: tStore("size"), cell: (file) => size(file.size), isNumber: true },
        { name: "status", label: t("status"), cell: (file) => <FileStatus status={file.status} /> },
        { name: "sha256", label: "SHA-256", cell: (file) => <code class="hash">{file.sha256}</code> },
      ]}
    />
  ) : (
    <Empty title={t("files.none")} icon="file" />
  );
}

function FileStatus({ status }: { status: string }) {
  return status === "ready" ? <Chip tone="good">{t("file.ready")}</Chip> : <Chip tone="warn">{t("file.receiving")}</Chip>;
}
