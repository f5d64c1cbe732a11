// The last downloaded version of a product. It is stored with the account if the product is in the library, or else in
// this browser for each person.
import { effect, signal } from "@preact/signals";
import { api, type Schemas } from "./api";
import { me } from "./me";
import { ownedIds } from "./owned_and_followed";

type Platform = NonNullable<Schemas["Artifact"]["platform"]>;
type ByChannel = Readonly<Record<string, string>>;

interface Release {
  channel: string;
  version: string;
}

/** Maps a product's id to the version of each channel that was downloaded in this browser. */
export const downloadedHere = signal<Readonly<Record<string, ByChannel>>>({});

/** The number of downloads that the account has stored since the page was loaded. The library is read again when it grows. */
export const recordedDownloads = signal(0);

const storageKey = () => `countersign-downloaded ${me.peek()?.email ?? ""}`;

effect(() => {
  if (me.value !== undefined) {
    downloadedHere.value = readVersions();
  }
});

function readVersions(): Readonly<Record<string, ByChannel>> {
  try {
    const storedValue: unknown = JSON.parse(localStorage.getItem(storageKey()) ?? "{}");
    return storedValue !== null && typeof storedValue === "object" ? (storedValue as Record<string, ByChannel>) : {};
  } catch {
    // Ignore an entry that cannot be read.
    return {};
  }
}

/** Record which version is downloaded. */
export async function recordDownload(id: string, { channel, version }: Release, platform: Platform | null): Promise<void> {
  try {
    if (ownedIds.peek().has(id)) {
      await api.patch("/api/v1/library/{id}", { values: { id }, body: { downloaded: { version, platform, at: null } } });
      recordedDownloads.value += 1;
    } else {
      const newVersions = { ...downloadedHere.peek(), [id]: { ...downloadedHere.peek()[id], [channel]: version } };
      downloadedHere.value = newVersions;
      localStorage.setItem(storageKey(), JSON.stringify(newVersions));
    }
  } catch {
    // Ignore the error: the download continues, and the next download is recorded.
  }
}
