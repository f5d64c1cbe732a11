// The checks of a draft's files: the progress of each file, and the remedy for a refused or incomplete file.
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Empty } from "../../shared/components/states";
import { translator } from "../../shared/i18n";
import { ProcessingJob, type JobState } from "./processing_job";
import type { Release } from "./releases";

const t = translator("publisher");

interface Props {
  release: Release;
  onState: (artifact: string, state: JobState) => void;
  onFiles: () => void;
}

export function CheckFiles({ release, onState, onFiles }: Props) {
  const files = release.artifacts ?? [];
  if (!files.length) {
    return <Empty title={t("checks.none")} icon="file" />;
  }
  return (
    <>
      <p class="quiet">{t("checks.text")}</p>
      <ul class="checked-files">
        {files.map((file) => (
          <li key={file.id} class="panel-box">
            {file.status === "ready" ? (
              <ProcessingJob artifact={file.id} name={file.filename} onState={(state) => onState(file.id, state)} onReplace={onFiles} />
            ) : (
              <div class="stack">
                <p class="row between">
                  <strong class="whole">{file.filename}</strong>
                  <Chip tone="warn">{t("file.receiving")}</Chip>
                </p>
                <p>{t("checks.unfinished")}</p>
                <div>
                  <Button onClick={onFiles}>{t("step.files")}</Button>
                </div>
              </div>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
