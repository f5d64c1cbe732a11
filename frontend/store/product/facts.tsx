// The facts of a product beside its description.
import { Fragment } from "preact";
import type { Schemas } from "../api";
import { PLATFORMS } from "../platform";
import { translator } from "../../shared/i18n";

const t = translator("store");

export function Facts({ product }: { product: Schemas["ProductDetail"] }) {
  const isWeb = /^https?:\/\//.test(product.homepage ?? "");
  return (
    <dl class="facts">
      <dt>{t("maker")}</dt>
      <dd>
        <a href={`/?org=${encodeURIComponent(product.org)}`}>{product.org}</a>
      </dd>
      <dt>{t("platform")}</dt>
      <dd>
        {product.platforms.map((each, place) => (
          <Fragment key={each}>
            {place > 0 && ", "}
            <a href={`/?platform=${each}`}>{PLATFORMS[each]}</a>
          </Fragment>
        ))}
      </dd>
      {product.license && (
        <>
          <dt>{t("license")}</dt>
          <dd>{product.license}</dd>
        </>
      )}
      {product.homepage && (
        <>
          <dt>{t("homepage")}</dt>
          <dd>
            {isWeb ? (
              <a href={product.homepage} rel="noopener noreferrer nofollow ugc">
                {product.homepage}
              </a>
            ) : (
              product.homepage
            )}
          </dd>
        </>
      )}
      {product.tags.length > 0 && (
        <>
          <dt>{t("tags")}</dt>
          <dd class="row">
            {product.tags.map((each) => (
              <a key={each} href={`/?tag=${encodeURIComponent(each)}`}>
                {each}
              </a>
            ))}
          </dd>
        </>
      )}
    </dl>
  );
}
