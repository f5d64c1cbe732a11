// Facts about the newest build in sentences: who signed it, its checksum, how it is updated, and its components. The last
// one names the facts that are missing.
import type { ComponentChildren } from "preact";
import { CopyButton } from "../../shared/components/button";
import { Icon, type IconName } from "../../shared/components/icon";
import { date, joinWords, plural, size, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { PLATFORMS } from "../platform";
import { updateTo, type BuildFacts } from "./build_facts";
import type { Offer } from "./get_product";
import { Provenance, statementOf } from "./provenance";

const t = translator("store");

type Detail = Schemas["ProductDetail"];
type File = Schemas["Artifact"];

interface Props {
  product: Detail;
  offer: Offer;
  /** Null until they are known. */
  known: BuildFacts | null;
}

export function AboutBuild({ product, offer, known }: Props) {
  const { release, channel } = offer;
  if (!release) {
    return null;
  }
  const { version } = release;
  const file = offer.file ?? offer.files[0];
  const option = channel === "stable" ? "" : ` --channel ${channel}`;
  const pull = `countersign pull ${product.org}/${product.slug} ./${product.slug}${option}`;
  return (
    <section aria-labelledby="build">
      <h2 id="build">{t("build")}</h2>
      <ul class="build" aria-busy={known === null}>
        {known && <SignatureSentence product={product} channel={channel} known={known} />}
        {file?.sha256 && <Checksum file={file} sha256={file.sha256} />}
        {known?.signed && <Updates release={release} file={file} />}
        {known && <Components product={product} version={version} file={file} count={known.components} />}
        {known && <Missing known={known} />}
        {!known && <li class="bone" />}
      </ul>
      <p class="terminal">
        <Icon name="terminal" />
        <span class="quiet">{t("pull")}</span>
        <code>{pull}</code>
        <CopyButton text={pull} name={t("pull")} />
      </p>
    </section>
  );
}

function SignatureSentence({ product, channel, known: { signed } }: { product: Detail; channel: string; known: BuildFacts }) {
  if (!signed) {
    return null;
  }
  const statement = statementOf(signed.statement);
  return (
    <Fact icon="circle-check" title={t("build.signed", { publisher: product.publisher?.name ?? product.org })}>
      {t("build.signed.text", { version: statement.version, from: date(statement.issued_at), until: date(statement.expires_at) })}
      <Provenance product={product} channel={channel} />
    </Fact>
  );
}

function Checksum({ file, sha256 }: { file: File; sha256: string }) {
  const format = /\.(tar\.\w+|\w+)$/.exec(file.filename)?.[1];
  return (
    <Fact icon="file" title={file.platform ? t("build.file", { platform: PLATFORMS[file.platform] }) : file.filename}>
      {[format, size(file.size)].filter(Boolean).join(" · ")}
      <span class="row build-hash">
        <code class="hash" title={sha256}>
          {sha256}
        </code>
        <CopyButton text={sha256} name={`SHA-256 ${file.filename}`} />
      </span>
    </Fact>
  );
}

function Updates({ release, file }: { release: Schemas["Release"]; file: File | undefined }) {
  const update = updateTo(release, file);
  return (
    <Fact icon="refresh-cw" title={t("build.updates")}>
      {update && file
        ? t("build.updates.size", { version: update.from_version, delta: size(update.size), size: size(file.size) })
        : t("build.updates.text")}
    </Fact>
  );
}

interface ComponentsProps {
  product: Detail;
  version: string;
  file: File | undefined;
  count: BuildFacts["components"];
}

function Components({ product, version, file, count }: ComponentsProps) {
  if (typeof count !== "number") {
    return null;
  }
  const query = file?.platform ? `?platform=${file.platform}` : "";
  return (
    <Fact icon="package-open" title={plural(count, t("build.parts.one"), t("build.parts"))}>
      <a href={`/api/v1/products/${product.slug}/releases/${encodeURIComponent(version)}/sbom${query}`}>{t("build.parts.text")}</a>
    </Fact>
  );
}

/** Name what the build lacks. The store neither scans files nor records where they were built. */
function Missing({ known: { signed, components } }: { known: BuildFacts }) {
  const missing = [
    signed === null && t("build.no.signature"),
    t("build.no.scan"),
    t("build.no.provenance"),
    components === null && t("build.no.parts"),
  ].filter((row) => row !== false);
  return (
    <Fact icon="info" title={t("build.missing", { facts: joinWords(missing, "disjunction") })} isMissing>
      {components === "owners" ? t("build.parts.owners") : t("build.compare")}
    </Fact>
  );
}

function Fact({ icon, title, isMissing = false, children }: { icon: IconName; title: string; isMissing?: boolean; children: ComponentChildren }) {
  return (
    <li class={isMissing ? "panel-box missing" : "panel-box"}>
      <Icon name={icon} size="l" />
      <div>
        <b>{title}</b>
        <div class="quiet small">{children}</div>
      </div>
    </li>
  );
}
