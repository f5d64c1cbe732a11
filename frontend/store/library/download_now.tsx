// The button that downloads the newest file for this system, or shows the available files if there is none.
import { useState } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { Problem } from "../../shared/problem";
import { showToast } from "../../shared/toast";
import { api, type Schemas } from "../api";
import { currentPlatform } from "../platform";
import { recordDownload } from "../downloaded_versions";

type OwnedProduct = Schemas["Owned"];
type Release = Schemas["Release"];

interface Props {
  product: OwnedProduct;
  label: string;
  /** The channel whose newest release is downloaded. */
  channel?: string | undefined;
  /** Whether only the icon is shown. */
  isIcon?: boolean;
  /** Called if there is no file for this system. */
  onOther: () => void;
}

export function DownloadNow({ product, label, channel = "stable", isIcon = false, onOther }: Props) {
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    if (isBusy) {
      return;
    }
    setBusy(true);
    try {
      if (!(await download(product, channel))) {
        onOther();
      }
    } catch (error) {
      showToast(Problem.from(error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" class={isIcon ? "button square" : "get-now"} aria-disabled={isBusy || undefined} onClick={run}>
      <Icon name="download" {...(isIcon ? {} : { size: "s" as const })} />
      {!isIcon && label}
      <span class="hidden-text"> {isIcon ? `${label} ${product.title}` : product.title}</span>
    </button>
  );
}

/** Start the download of the newest file for this system. Return false if there is none. */
export async function download(product: OwnedProduct, channel = "stable"): Promise<boolean> {
  const values = { id: product.id };
  const releases = (await api.get("/api/v1/products/{id}/releases", { values, query: { limit: 20 } })).value as Release[];
  const availableReleases = releases.filter((release) => release.status !== "yanked");
  const release = availableReleases.find((release) => release.channel === channel) ?? availableReleases[0];
  const files = release?.artifacts ?? [];
  const file = files.find((file) => file.platform === currentPlatform) ?? (files.length === 1 ? files.find((file) => !file.platform) : undefined);
  if (!release || !file) {
    return false;
  }
  const link = document.createElement("a");
  link.href = `/api/v1/artifacts/${file.id}`;
  link.download = "";
  link.click();
  void recordDownload(product.id, release, file.platform);
  return true;
}
