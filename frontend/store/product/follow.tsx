// The buttons that follow a product in the account, and link to its feed.
import { Icon } from "../../shared/components/icon";
import { Problem } from "../../shared/problem";
import { signInAddress } from "../../shared/sign_in_page";
import { showToast } from "../../shared/toast";
import { translator } from "../../shared/i18n";
import { api } from "../api";
import { me } from "../me";
import { followedProducts, useOwnedState } from "../owned_and_followed";

const t = translator("store");
const tLibrary = translator("library");

interface Props {
  product: { id?: string; title: string };
  /** Whether the button is on a picture: it is then light and large. */
  isOnPicture?: boolean;
}

export function FollowButton({ product, isOnPicture = false }: Props) {
  const { id = "", title } = product;
  const isKnown = useOwnedState(id);
  const className = isOnPicture ? "button large glass" : "button";
  if (!id) {
    return null;
  }
  const label = (labelText: string) => (
    <>
      <Icon name="heart" />
      {labelText}
      <span class="hidden-text">: {title}</span>
    </>
  );
  if (me.value === null) {
    return (
      <a class={className} href={signInAddress()}>
        {label(tLibrary("follow"))}
      </a>
    );
  }
  const isFollowed = followedProducts.value.has(id);
  return (
    <button
      type="button"
      class={className}
      aria-disabled={!isKnown || undefined}
      aria-pressed={isFollowed}
      onClick={() => isKnown && void followProduct(id, !isFollowed)}
    >
      {label(isFollowed ? t("publisher.followed") : tLibrary("follow"))}
    </button>
  );
}

/** Follow a product, or stop following it. The change is shown at once, and undone if it is refused. */
export async function followProduct(id: string, isFollowed: boolean): Promise<void> {
  const show = (is: boolean) => {
    const next = new Set(followedProducts.peek());
    if (is) {
      next.add(id);
    } else {
      next.delete(id);
    }
    followedProducts.value = next;
  };
  show(isFollowed);
  try {
    const values = { id };
    await (isFollowed ? api.put("/api/v1/me/follows/product/{id}", { values }) : api.delete("/api/v1/me/follows/product/{id}", { values }));
  } catch (error) {
    show(!isFollowed);
    showToast(Problem.from(error).message);
  }
}

/** The address of a product's feed (RFC 4287). */
export function feedUrl(product: { slug: string }): string {
  return `/api/v1/products/${product.slug}/feed`;
}
