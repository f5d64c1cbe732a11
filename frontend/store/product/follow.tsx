// Following a product: its news on one page here, and as a feed in any reader. Who follows what, the store never learns.
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/components/button";
import type { Schemas } from "../api";
import { me } from "../me";
import { say as own } from "../library/say";
import { say } from "../say";
import { note, shelf } from "../shelf";

export function Follow({ product }: { product: Schemas["ProductDetail"] }) {
  const since = shelf.value[product.id]?.followed;
  const isFollowed = since !== undefined;
  useEffect(() => {
    if (isFollowed) {
      // Whoever looks at it has seen its news.
      note(product.id, { followed: new Date().toISOString() });
    }
  }, [product.id, isFollowed]);
  return (
    <div class="row">
      {me.value !== undefined && (
        <Button aria-pressed={isFollowed} onClick={() => note(product.id, { followed: isFollowed ? "" : new Date().toISOString() })}>
          {own("follow")}
        </Button>
      )}
      <a href="/following">{say("following")}</a>
      <a href={feed(product)} type="application/atom+xml">
        {own("feed")}
      </a>
    </div>
  );
}

/** The address of a product's feed (RFC 4287). */
export function feed(product: { slug: string }): string {
  return `/api/v1/products/${product.slug}/feed`;
}
