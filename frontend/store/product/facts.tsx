// The facts beside a product's description, and the buttons to share or follow it.
import type { ComponentChildren } from "preact";
import { showToast } from "../../shared/toast";
import { Icon } from "../../shared/components/icon";
import { date, size, language, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { PLATFORMS } from "../platform";
import { feedUrl } from "./follow";
import type { Offer } from "./get_product";

const tCommon = translator("common");
const tLibrary = translator("library");
const t = translator("store");

/** The number of languages that fit into one line. */
const MAX_LANGUAGES = 3;

interface Props {
  product: Schemas["ProductDetail"];
  offer: Offer;
  releases: readonly Schemas["Release"][];
}

export function Facts({ product, offer: { release, file }, releases }: Props) {
  const firstDate = product.latest?.first_published_at ?? releases.map((release) => release.published_at ?? "").filter(Boolean).sort()[0];
  const names = new Intl.DisplayNames(language, { type: "language" });
  return (
    <>
      <dl class="panel-box fact-list">
        <Fact name={t("maker")}>
          <a href={`/publishers/${encodeURIComponent(product.org)}`}>{product.publisher?.name ?? product.org}</a>
        </Fact>
        {release && (
          <Fact name={t("latest.version")}>
            {[release.version, release.published_at && date(release.published_at)].filter(Boolean).join(" · ")}
          </Fact>
        )}
        {firstDate && <Fact name={t("first.released")}>{date(firstDate)}</Fact>}
        {file && (
          <Fact name={t("files.size")}>
            {size(file.size)} {file.platform && `(${PLATFORMS[file.platform]})`}
          </Fact>
        )}
        {product.license && <Fact name={t("license")}>{product.license === "proprietary" ? t("license.proprietary") : product.license}</Fact>}
        {product.languages?.length > 0 && (
          <Fact name={t("languages")}>
            <Languages names={product.languages.map((language) => names.of(language) ?? language)} />
          </Fact>
        )}
        {product.homepage && (
          <Fact name={t("homepage")}>
            <Homepage address={product.homepage} />
          </Fact>
        )}
      </dl>
      <p class="page-links">
        <a href={feedUrl(product)} type="application/atom+xml">
          <Icon name="rss" size="s" />
          {tLibrary("feed")}
        </a>
        <button type="button" onClick={copyLink}>
          <Icon name="link" size="s" />
          {t("link.copy")}
        </button>
      </p>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Some languages by name, and the number of the other languages. The tooltip, and a text for screen readers, list the others. */
function Languages({ names }: { names: readonly string[] }) {
  const otherNames = names.slice(MAX_LANGUAGES);
  return (
    <>
      {names.slice(0, MAX_LANGUAGES).join(", ")}
      {otherNames.length > 0 && (
        <span title={otherNames.join(", ")}>
          {" "}
          <span aria-hidden="true">+{otherNames.length}</span>
          <span class="hidden-text">, {otherNames.join(", ")}</span>
        </span>
      )}
    </>
  );
}

function Homepage({ address }: { address: string }) {
  if (!/^https?:\/\//.test(address)) {
    return <>{address}</>;
  }
  return (
    <a href={address} rel="noopener noreferrer nofollow ugc">
      {address.replace(/^https?:\/\/(www\.)?|\/$/g, "")}
    </a>
  );
}

async function copyLink(): Promise<void> {
  try {
    await navigator.clipboard.writeText(location.href);
    showToast(tCommon("copied"));
  } catch {
    showToast(tCommon("copied.not"));
  }
}
