// Following a product: its news on one page here, and as a feed in any reader.
import { useEffect } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import { me } from "../me";
import { updateNotes, productNotes } from "../product_notes";

const tLibrary = translator("library");

interface Props {
  product: { id?: string; title: string };
  /** On a picture it is light, and large. */
  isOnPicture?: boolean;
}

export function FollowButton({ product, isOnPicture = false }: Props) {
  const { id, title } = product;
  if (!id) {
    return null;
  }
  const isFollowed = productNotes.value[id]?.followed !== undefined;
  return (
    <button
      type="button"
      class={isOnPicture ? "button large glass" : "button"}
      disabled={me.value === undefined}
      aria-pressed={isFollowed}
      onClick={() => updateNotes(id, { followed: isFollowed ? "" : new Date().toISOString() })}
    >
      <Icon name="heart" />
      {tLibrary("follow")}
      <span class="hidden-text">: {title}</span>
    </button>
  );
}

/** The address of a product's feed (RFC 4287). */
export function feedUrl(product: { slug: string }): string {
  return `/api/v1/products/${product.slug}/feed`;
}

/** Whoever looks at a followed product has seen its news. */
export function useSeenNews(id: string): void {
  const isFollowed = productNotes.value[id]?.followed !== undefined;
  useEffect(() => {
    if (isFollowed) {
      updateNotes(id, { followed: new Date().toISOString() });
    }
  }, [id, isFollowed]);
}
