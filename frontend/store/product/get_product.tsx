// How to get a product: the download for this platform, or how to become entitled to it.
import { LinkButton } from "../../shared/components/button";
import { size, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { CommandLine } from "../command_line";
import { me } from "../me";
import { currentPlatform, PLATFORMS } from "../platform";
import { recordDownload } from "../product_notes";

const tCommon = translator("common");
const t = translator("store");

type Detail = Schemas["ProductDetail"];
type Release = Schemas["Release"];

interface Props {
  product: Detail;
  releases: readonly Release[];
  channel: string;
  isOwned: boolean | null;
}

export function GetProduct({ product, releases, channel, isOwned }: Props) {
  const newest = releases.find((each) => each.channel === channel && each.status !== "yanked");
  const files = (newest?.artifacts ?? []).filter((each) => each.status === "ready");
  const file = files.find((each) => each.platform === currentPlatform) ?? files.find((each) => !each.platform) ?? files[0];
  const isHere = file?.platform === currentPlatform;
  const option = channel === "stable" ? "" : ` --channel ${channel}`;
  const pull = `countersign pull ${product.org}/${product.slug} ./${product.slug}${option}`;
  const fetch = `countersign download ${product.org}/${product.slug}${option}`;
  return (
    <section class="get stack" aria-label={t("get")}>
      {isOwned === false && <NotEntitled product={product} />}
      {isOwned && newest && file && (
        <div class="row">
          <LinkButton look="strong" download href={`/api/v1/artifacts/${file.id}`} onClick={() => recordDownload(product.id, newest)}>
            {t("download.of", { version: newest.version })}
          </LinkButton>
          <span>
            {file.platform ? t("for", { platform: PLATFORMS[file.platform] }) : file.filename}
            {isHere && ` · ${t("for.you")}`} <span class="quiet">· {size(file.size)}</span>
          </span>
        </div>
      )}
      {newest && (
        <>
          <CommandLine label={t("pull")} text={pull} />
          <CommandLine label={t("fetch")} text={fetch} />
        </>
      )}
    </section>
  );
}

/** What has to happen before it can be downloaded. */
function NotEntitled({ product }: { product: Detail }) {
  return (
    <div class="stack">
      <p>{t("entitled.text")}</p>
      <div class="row">
        <LinkButton look="strong" href="/redeem">
          {t("redeem")}
        </LinkButton>
        {me.value === null && (
          <LinkButton href={`/auth/signin?return_to=${encodeURIComponent(`/products/${product.slug}`)}`}>
            {tCommon("sign.in")}
          </LinkButton>
        )}
      </div>
    </div>
  );
}
