// Facts about the newest build in sentences: who signed it, whether it was scanned, where it was built, and its
// components. One line names the missing facts.
import type { ComponentChildren } from "preact";
import { useRequest } from "../../shared/request";
import { CopyButton } from "../../shared/components/button";
import { Icon, type IconName } from "../../shared/components/icon";
import { date, listed, plural, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import type { Offer } from "./get_product";
import { Provenance, statementOf } from "./provenance";

const t = translator("store");

type Detail = Schemas["ProductDetail"];

interface Props {
  product: Detail;
  offer: Offer;
}

/** A malware scan of the newest files, if the service has one. */
interface Scan {
  status: string;
  at: string;
}

interface Known {
  signed: Schemas["ChannelState"] | null;
  components: number | null;
}

export function AboutBuild({ product, offer: { release, channel } }: Props) {
  const version = release?.version ?? "";
  const found = useRequest((signal) => read(product, channel, version, signal), [product.id, channel, version], { keepsPrevious: true });
  if (!release) {
    return null;
  }
  const known = found.state === "loaded" ? found.value : null;
  const said = known?.signed ? statementOf(known.signed.statement) : null;
  const parts = known?.components ?? null;
  const { scan } = product as { scan?: Scan | null };
  const isScanned = scan?.status === "clean";
  const missing = [!said && t("build.no.signature"), !isScanned && t("build.no.scan"), t("build.no.provenance"), parts === null && t("build.no.parts")].filter(
    (each) => each !== false,
  );
  const publisher = product.publisher?.name ?? product.org;
  const option = channel === "stable" ? "" : ` --channel ${channel}`;
  const pull = `countersign pull ${product.org}/${product.slug} ./${product.slug}${option}`;
  return (
    <section aria-labelledby="build">
      <h2 id="build">{t("build")}</h2>
      {(said !== null || isScanned || parts !== null) && (
        <ul class="build">
          {said && (
            <Fact icon="circle-check" title={t("build.signed", { publisher })}>
              {t("build.signed.text", { from: date(said.issued_at), until: date(said.expires_at) })}
              <Provenance product={product} channel={channel} />
            </Fact>
          )}
          {isScanned && (
            <Fact icon="shield-check" title={t("build.scanned")}>
              {date(scan.at)}
            </Fact>
          )}
          {parts !== null && (
            <Fact icon="package-open" title={plural(parts, t("build.parts.one"), t("build.parts"))}>
              <a href={`/api/v1/products/${product.slug}/releases/${encodeURIComponent(version)}/sbom`}>{t("build.parts.text")}</a>
            </Fact>
          )}
        </ul>
      )}
      <p class="quiet build-missing" aria-busy={known === null}>
        {known && [t("build.missing", { facts: listed(missing, "disjunction") }), !said && t("build.compare")].filter(Boolean).join(" ")}
      </p>
      <p class="terminal">
        <Icon name="terminal" />
        <span class="quiet">{t("pull")}</span>
        <code>{pull}</code>
        <CopyButton text={pull} of={t("pull")} />
      </p>
    </section>
  );
}

function Fact({ icon, title, children }: { icon: IconName; title: string; children: ComponentChildren }) {
  return (
    <li class="panel-box">
      <Icon name={icon} size="l" />
      <div>
        <b>{title}</b>
        <div class="quiet small">{children}</div>
      </div>
    </li>
  );
}

/** Load the channel's signature and the number of components in one request. Missing values are null. */
async function read(product: Detail, channel: string, version: string, signal: AbortSignal): Promise<Known> {
  if (!version) {
    return { signed: null, components: null };
  }
  const at = `/products/${product.id}`;
  const operations = [`${at}/channels/${channel}`, `${at}/releases/${encodeURIComponent(version)}/sbom`].map((path) => ({
    method: "GET" as const,
    path,
    body: null,
    headers: null,
  }));
  const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, signal })).value;
  const [signed, bill] = results.map((each) => (each.status === 200 ? each.body : null));
  const components = (bill as { components?: unknown[] } | null)?.components;
  return { signed: signed as unknown as Schemas["ChannelState"] | null, components: Array.isArray(components) ? components.length : null };
}

