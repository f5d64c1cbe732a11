// Facts about the newest build in sentences: who signed it, whether it was scanned, where it was built, and its
// components. Missing facts are named too.
import type { ComponentChildren } from "preact";
import { useRequest } from "../../shared/request";
import { CopyButton } from "../../shared/components/button";
import { Icon, type IconName } from "../../shared/components/icon";
import { date, plural, translator } from "../../shared/i18n";
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
  const { scan } = product as { scan?: Scan | null };
  const publisher = product.publisher?.name ?? product.org;
  const option = channel === "stable" ? "" : ` --channel ${channel}`;
  const pull = `countersign pull ${product.org}/${product.slug} ./${product.slug}${option}`;
  return (
    <section aria-labelledby="build">
      <h2 id="build">{t("build")}</h2>
      <ul class="build" aria-busy={known === null}>
        <Fact isKnown={said !== null} icon="circle-check" title={said ? t("build.signed", { publisher }) : t("build.unsigned")}>
          {said ? (
            <>
              {t("build.signed.text", { from: date(said.issued_at), until: date(said.expires_at) })}
              <Provenance product={product} channel={channel} />
            </>
          ) : (
            t("build.unsigned.text")
          )}
        </Fact>
        <Fact
          isKnown={scan?.status === "clean"}
          icon={scan?.status === "clean" ? "shield-check" : "shield-alert"}
          title={scan?.status === "clean" ? t("build.scanned") : t("build.unscanned")}
        >
          {scan?.status === "clean" ? date(scan.at) : t("build.unscanned.text")}
        </Fact>
        <Fact isKnown={false} icon="git-commit-horizontal" title={t("build.unproven")}>
          {t("build.unproven.text")}
        </Fact>
        <Fact
          isKnown={known?.components != null}
          icon="package-open"
          title={known?.components != null ? plural(known.components, t("build.parts.one"), t("build.parts")) : t("build.no.parts")}
        >
          {known?.components != null ? (
            <a href={`/api/v1/products/${product.slug}/releases/${encodeURIComponent(version)}/sbom`}>{t("build.parts.text")}</a>
          ) : (
            t("build.no.parts.text")
          )}
        </Fact>
      </ul>
      <p class="terminal">
        <Icon name="terminal" />
        <span class="quiet">{t("pull")}</span>
        <code>{pull}</code>
        <CopyButton text={pull} of={t("pull")} />
      </p>
    </section>
  );
}

function Fact({ isKnown, icon, title, children }: { isKnown: boolean; icon: IconName; title: string; children: ComponentChildren }) {
  return (
    <li class={isKnown ? "panel-box known" : "panel-box"}>
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

