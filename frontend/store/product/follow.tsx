// Following a product: its news on one page here, and as a feed in any reader. Who follows what, the store never learns.
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/components/button";
import type { Schemas } from "../api";
import { me } from "../me";
import { updateNotes, productNotes } from "../product_notes";
import { translator } from "../../shared/i18n";

const tLibrary = translator("library");
const t = translator("store");

export function Follow({ product }: { product: Schemas["ProductDetail"] }) {
  const since = productNotes.value[product.id]?.followed;
  const isFollowed = since !== undefined;
  useEffect(() => {
    if (isFollowed) {
      // Whoever looks at it has seen its news.
      updateNotes(product.id, { followed: new Date().toISOString() });
    }
  }, [product.id, isFollowed]);
  return (
    <div class="row">
      {me.value !== undefined && (
        <Button aria-pressed={isFollowed} onClick={() => updateNotes(product.id, { followed: isFollowed ? "" : new Date().toISOString() })}>
          {tLibrary("follow")}
        </Button>
      )}
      <a href="/following">{t("following")}</a>
      <a href={feedUrl(product)} type="application/atom+xml">
        {tLibrary("feed")}
      </a>
    </div>
  );
}

/** The address of a product's feed (RFC 4287). */
export function feedUrl(product: { slug: string }): string {
  return `/api/v1/products/${product.slug}/feed`;
}
