// What a draft still lacks before it can be published, by the rules of the API (publish a draft release).
import type { JobStates } from "./processing_job";
import type { Release } from "./releases";

type File = NonNullable<Release["artifacts"]>[number];

/** Whether at least one file was announced and all announced files have arrived, or no file is needed. */
export function areFilesUploaded(release: Release): boolean {
  const files = release.artifacts ?? [];
  return files.length ? files.every((file) => file.status === "ready") : Boolean(release.notes_only);
}

/** The files that block publication: files of platforms without an accepted file, or all files if none is accepted. */
export function blockingFiles(release: Release, jobs: JobStates): readonly File[] {
  const files = release.artifacts ?? [];
  const accepted = new Set(files.filter((file) => jobs[file.id] === "completed").map((file) => file.platform));
  const isNeeded = (file: File) => !accepted.size || file.platform !== null;
  return files.filter((file) => isNeeded(file) && !accepted.has(file.platform));
}

export function areFilesAccepted(release: Release, jobs: JobStates): boolean {
  return blockingFiles(release, jobs).length === 0;
}
