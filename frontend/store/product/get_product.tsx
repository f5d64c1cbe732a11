// The panel to get a product: the download for this platform, or the field for a code.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button, LinkButton } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { SignInAgain } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { useRequest } from "../../shared/request";
import { signInAddress } from "../../shared/sign_in_page";
import { showToast } from "../../shared/toast";
import { size, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { downloadedHere, recordedDownloads, recordDownload } from "../downloaded_versions";
import { me } from "../me";
import { ownedIds } from "../owned_and_followed";
import { useOwnsProduct } from "../ownership";
import { useStoredInput } from "../stored_input";
import { currentPlatform, PLATFORMS } from "../platform";
import { PlatformMarks } from "../platform_marks";
import { FollowButton } from "./follow";

const t = translator("store");

/** The maximum number of available updates that are searched for this product. */
const MAX_UPDATES = 100;

type Detail = Schemas["ProductDetail"];
type Release = Schemas["Release"];
type File = Schemas["Artifact"];

/** The offer of a product in one channel. */
export interface Offer {
  channel: string;
  /** The newest release that was not withdrawn. */
  release: Release | undefined;
  /** The newest release, if it was withdrawn. */
  withdrawn: Release | undefined;
  /** Its files, the one for this computer first. */
  files: readonly File[];
  /** The file for this computer. */
  file: File | undefined;
  /** Null until it is known. */
  isOwned: boolean | null;
}

/** The position of a file's platform in lists of platforms. */
function placeOf({ platform }: File): number {
  return platform ? Object.keys(PLATFORMS).indexOf(platform) : -1;
}

export function useOffer(product: Detail, releases: readonly Release[], channel: string): Offer {
  const ownsProduct = useOwnsProduct(product);
  const inChannel = releases.filter((release) => release.channel === channel);
  const release = inChannel.find((candidate) => candidate.status !== "yanked");
  const isHere = (file: File) => Number(file.platform === currentPlatform);
  const files = (release?.artifacts ?? [])
    .filter((artifact) => artifact.status === "ready")
    .sort((a, b) => isHere(b) - isHere(a) || placeOf(a) - placeOf(b));
  const isOwned = ownedIds.value.has(product.id) || ownsProduct;
  const newest = inChannel[0];
  return {
    channel,
    release,
    withdrawn: newest?.status === "yanked" ? newest : undefined,
    files,
    file: files.find((file) => file.platform === currentPlatform) ?? files.find((file) => !file.platform),
    isOwned,
  };
}

interface Props {
  product: Detail;
  offer: Offer;
}

/** The text above the button: the access to the product. */
function headOf({ product, offer }: Props): string {
  if (offer.withdrawn) {
    return t("yanked", { reason: offer.withdrawn.yank_reason ?? "" });
  }
  if (product.access === "free") {
    return t("free");
  }
  return offer.isOwned ? t("owned.long") : t("entitled");
}

/** The last downloaded version of this channel, if there is a newer one. Stored in the account for products of the library,
 *  or else in this browser. */
function useEarlierVersion({ product, offer }: Props): string | undefined {
  const isInLibrary = ownedIds.value.has(product.id);
  const updates = useRequest(
    async (signal) => (isInLibrary ? (await api.get("/api/v1/library", { query: { update: "1", limit: MAX_UPDATES }, signal })).value : []),
    [product.id, isInLibrary, recordedDownloads.value],
    { keepsPrevious: true },
  );
  const here = downloadedHere.value[product.id]?.[offer.channel];
  const libraryItem = updates.state === "loaded" ? updates.value.find((update) => update.id === product.id) : undefined;
  const installedVersion = libraryItem?.update?.channel === offer.channel ? libraryItem.installed_version : isInLibrary ? undefined : here;
  return installedVersion && offer.release && installedVersion !== offer.release.version ? installedVersion : undefined;
}

export function GetPanel({ product, offer }: Props) {
  const earlier = useEarlierVersion({ product, offer });
  const earlierVersion = offer.isOwned ? earlier : undefined;
  const panel = useRef<HTMLElement>(null);
  const [hasRedeemed, setRedeemed] = useState(false);
  useEffect(() => {
    // The download replaces the field that had the focus.
    if (hasRedeemed && offer.isOwned) {
      panel.current?.querySelector("a")?.focus();
    }
  }, [hasRedeemed, offer.isOwned]);
  return (
    <section class="get panel-box" aria-label={t("get")} ref={panel}>
      <div class="get-head">
        <h2>{earlierVersion ? t("update.available") : headOf({ product, offer })}</h2>
        <PlatformMarks platforms={product.platforms} />
      </div>
      {earlierVersion && (
        <p class="quiet">
          {earlierVersion} → {offer.release?.version}
        </p>
      )}
      {offer.isOwned === null && <span class="bone get-bone" />}
      {offer.isOwned === false && <NotEntitled product={product} onRedeemed={() => setRedeemed(true)} />}
      {offer.isOwned && <Download product={product} offer={offer} isUpdate={earlierVersion !== undefined} />}
      <div class="halves">
        <FollowButton product={product} />
        {offer.isOwned === false && product.buy_url ? (
          <LinkButton href={product.buy_url}>
            <Icon name="external-link" />
            {t("buy")}
          </LinkButton>
        ) : earlierVersion ? (
          <LinkButton href="#releases">{t("notes")}</LinkButton>
        ) : (
          offer.files.length > 1 && <LinkButton href="#files">{t("files.other")}</LinkButton>
        )}
      </div>
    </section>
  );
}

function Download({ product, offer: { release, file, files, withdrawn }, isUpdate }: Props & { isUpdate: boolean }) {
  if (!release || !files.length) {
    return <p class="quiet">{t(release ? "files.none" : "releases.none")}</p>;
  }
  if (!file) {
    return (
      <>
        <p>{t("files.not.here", { platform: PLATFORMS[currentPlatform] })}</p>
        <LinkButton variant="strong" size="large full" href="#files">
          {t("files.all")}
        </LinkButton>
      </>
    );
  }
  const platform = file.platform ? PLATFORMS[file.platform] : "";
  return (
    <LinkButton
      variant="strong"
      size="large full"
      download
      href={`/api/v1/artifacts/${file.id}`}
      onClick={() => void recordDownload(product.id, release, file.platform)}
    >
      <Icon name="download" />
      {withdrawn || isUpdate || !platform ? t("download.of", { version: release.version }) : t("download.for", { platform })} · {size(file.size)}
    </LinkButton>
  );
}

/** The field for a code, or a link to sign in first. */
function NotEntitled({ product, onRedeemed }: { product: Detail; onRedeemed: () => void }) {
  const { value: code, change: setCode, forget } = useStoredInput(`code of ${product.id}`, "");
  const [key, setKey] = useState(() => crypto.randomUUID());
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  if (me.value === null) {
    return (
      <>
        <p class="quiet">{t("entitled.text")}</p>
        <LinkButton variant="strong" size="large full" href={signInAddress(`/products/${product.slug}`)}>
          {t("redeem.sign.in")}
        </LinkButton>
      </>
    );
  }
  const redeem = async (event: Event) => {
    event.preventDefault();
    if (!code.trim() || isBusy) {
      return;
    }
    setBusy(true);
    setProblem(null);
    try {
      const { value } = await api.post("/api/v1/redeem", { body: { code: code.trim() }, headers: { "Idempotency-Key": key } });
      const ids = value.products.length ? value.products : [value.product_id];
      forget();
      onRedeemed();
      ownedIds.value = new Set([...ownedIds.peek(), ...ids]);
      showToast(t(value.already_owned ? "redeem.owned" : "redeem.new"));
    } catch (error) {
      setProblem(Problem.from(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="get-code" onSubmit={redeem}>
      <p class="quiet">{t("entitled.help")}</p>
      <label class="hidden-text" for="get-code">
        {t("redeem.code")}
      </label>
      <input
        class="input code"
        id="get-code"
        value={code}
        placeholder="XXXXX-XXXXX-XXXXX"
        autocomplete="off"
        autocapitalize="characters"
        spellcheck={false}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? "get-code-fault" : undefined}
        onInput={(event) => {
          setCode(event.currentTarget.value);
          setKey(crypto.randomUUID());
        }}
      />
      {problem && (
        <p class="fault" id="get-code-fault" role="alert">
          {problem.message} {problem.status === 401 ? <SignInAgain problem={problem} /> : problem.resolution}
        </p>
      )}
      <Button type="submit" variant="strong" size="large full" busy={isBusy}>
        <Icon name="ticket" />
        {t("redeem.add")}
      </Button>
    </form>
  );
}

/** The bar on phones that replaces the tab bar: the access to the product, and the button. */
export function GetBar({ product, offer }: Props) {
  const { release, file, isOwned } = offer;
  return (
    <div class="get-bar">
      <div class="grow">
        <b class="cut">{headOf({ product, offer })}</b>
        <span class="quiet small">{[release?.version, file && size(file.size)].filter(Boolean).join(" · ")}</span>
      </div>
      {isOwned && file && release && (
        <LinkButton variant="strong" size="large" download href={`/api/v1/artifacts/${file.id}`} onClick={() => void recordDownload(product.id, release, file.platform)}>
          <Icon name="download" />
          {t("download")}
        </LinkButton>
      )}
      {isOwned === false && (
        <LinkButton
          variant="strong"
          size="large"
          href={me.value === null ? signInAddress(`/products/${product.slug}`) : "#get-code"}
        >
          <Icon name="ticket" />
          {t("redeem.do")}
        </LinkButton>
      )}
    </div>
  );
}
