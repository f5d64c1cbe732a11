// Notifications as a list: the product, what happened to it, and when.
import { dateTime, relativePast, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { CoverImage, publisherOf } from "../card";
import "./notifications.css";

const t = translator("notifications");

type Notification = Schemas["Notification"];

export function NotificationList({ items, onFollow }: { items: readonly Notification[]; onFollow?: () => void }) {
  return (
    <ul class="notes">
      {items.map((item) => (
        <li key={`${item.id} ${item.at}`} class={item.seen ? "note" : "note unseen"}>
          <CoverImage product={item.product} sizes="96px" />
          <div class="grow">
            <a class="name" href={addressOf(item)} onClick={onFollow}>
              {[item.product.title, item.release?.version].filter(Boolean).join(" ")}
            </a>
            <p class="quiet small">{wordsOf(item)}</p>
          </div>
          <span class="note-end">
            <time class="quiet small" dateTime={item.at} title={dateTime(item.at)}>
              {relativePast(item.at)}
            </time>
            {!item.seen && (
              <span class="dot">
                <span class="hidden-text">{t("new")}</span>
              </span>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

function addressOf({ product, release }: Notification): string {
  return `/products/${product.slug}${release && release.channel !== "stable" ? `?channel=${release.channel}` : ""}`;
}

function wordsOf({ type, product }: Notification): string {
  return type === "release" ? t("release", { publisher: publisherOf(product) }) : t(type);
}
