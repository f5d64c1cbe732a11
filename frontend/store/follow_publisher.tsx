// The button that follows a publisher. The account stores it.
import { effect, signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Icon } from "../shared/components/icon";
import { Problem } from "../shared/problem";
import { signInAddress } from "../shared/sign_in_page";
import { showToast } from "../shared/toast";
import { translator } from "../shared/i18n";
import { api } from "./api";
import { me } from "./me";

const t = translator("store");
const tLibrary = translator("library");

/** The slugs of the publishers that the person follows; null until they are loaded. */
export const followedPublishers = signal<ReadonlySet<string> | null>(null);

let requestedSlug: string | null = null;

/** Load the followed publishers once for each person. */
function load(): void {
  effect(() => {
    const person = me.value;
    if (!person) {
      followedPublishers.value = person === null ? new Set() : null;
      requestedSlug = null;
    } else if (requestedSlug !== person.email) {
      requestedSlug = person.email;
      void readFollowed();
    }
  });
}

async function readFollowed(): Promise<void> {
  try {
    const { items } = (await api.get("/api/v1/me/follows")).value;
    followedPublishers.value = new Set(items.filter((item) => item.target.type === "org").map((item) => item.target.slug));
  } catch {
    // The button then offers to follow, which has no effect if the person already follows.
    followedPublishers.value = new Set();
  }
}

/** Follow a publisher, or stop following it. The change is shown at once, and undone if it is refused. */
export async function follow(slug: string, isFollowed: boolean): Promise<void> {
  const followedBefore = followedPublishers.peek();
  const newFollowed = new Set(followedBefore);
  if (isFollowed) {
    newFollowed.add(slug);
  } else {
    newFollowed.delete(slug);
  }
  followedPublishers.value = newFollowed;
  try {
    const values = { slug };
    await (isFollowed ? api.put("/api/v1/me/follows/org/{slug}", { values }) : api.delete("/api/v1/me/follows/org/{slug}", { values }));
  } catch (error) {
    followedPublishers.value = followedBefore;
    showToast(Problem.from(error).message);
  }
}

let isLoading = false;

/** Load which publishers the person follows. */
export function useFollowedPublishers(): void {
  if (!isLoading) {
    isLoading = true;
    load();
  }
}

export function FollowPublisher({ slug, name }: { slug: string; name: string }) {
  const [isBusy, setBusy] = useState(false);
  useFollowedPublishers();
  if (me.value === null) {
    return (
      <a class="button strong" href={signInAddress()}>
        <Icon name="heart" />
        {tLibrary("follow")}
        <span class="hidden-text">: {name}</span>
      </a>
    );
  }
  const isFollowed = followedPublishers.value?.has(slug) ?? false;
  return (
    <button
      type="button"
      class={isFollowed ? "button" : "button strong"}
      aria-pressed={isFollowed}
      aria-disabled={followedPublishers.value === null || isBusy || undefined}
      onClick={async () => {
        if (followedPublishers.value !== null && !isBusy) {
          setBusy(true);
          await follow(slug, !isFollowed);
          setBusy(false);
        }
      }}
    >
      <Icon name="heart" />
      {isFollowed ? t("publisher.followed") : tLibrary("follow")}
      <span class="hidden-text">: {name}</span>
    </button>
  );
}
