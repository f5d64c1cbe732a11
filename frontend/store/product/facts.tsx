// What is said about a product beside its text.
import { Fragment } from "preact";
import type { Schemas } from "../api";
import { PLATFORMS } from "../platform";
import { say } from "../say";

export function Facts({ product }: { product: Schemas["ProductDetail"] }) {
  const isWeb = /^https?:\/\//.test(product.homepage ?? "");
  return (
    <dl class="facts">
      <dt>{say("maker")}</dt>
      <dd>
        <a href={`/?org=${encodeURIComponent(product.org)}`}>{product.org}</a>
      </dd>
      <dt>{say("platform")}</dt>
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
          <dt>{say("license")}</dt>
          <dd>{product.license}</dd>
        </>
      )}
      {product.homepage && (
        <>
          <dt>{say("homepage")}</dt>
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
          <dt>{say("tags")}</dt>
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
