// The bar at the bottom on a phone, with five links.
import { Icon, type IconName } from "../../shared/components/icon";
import { siteState } from "../../shared/components/heading";
import { path } from "../../shared/router";
import { translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { businessModels } from "../models";
import { isOpen } from "../palette/entries";
import { APPROVALS } from "./navigation";
import { WaitingBadge } from "./sidebar";
import { isSheet } from "./sidebar_state";

const t = translator("work");
const LAST_MODEL_KEY = "countersign-last-model";

/** The address of the list that was opened last, or of the first list. */
function recordsAddress(meta: Meta): string {
  const now = /^\/models\/(\w+)/.exec(path.value)?.[1];
  if (now) {
    sessionStorage.setItem(LAST_MODEL_KEY, now);
  }
  return `/models/${sessionStorage.getItem(LAST_MODEL_KEY) ?? businessModels(meta)[0]?.name ?? ""}`;
}

export function BottomBar({ meta }: { meta: Meta }) {
  const link = (address: string, label: string, icon: IconName, isHere: boolean) => (
    <a href={address} class="bottom-link" aria-current={isHere ? "page" : undefined}>
      <Icon name={icon} size="l" />
      {address === APPROVALS && siteState.waiting.value > 0 && <WaitingBadge count={siteState.waiting.value} />}
      {label}
    </a>
  );
  const records = recordsAddress(meta);
  return (
    <nav class="bottom-bar" aria-label={t("places")}>
      {link("/", t("home"), "house", path.value === "/")}
      {link(APPROVALS, t("approvals"), "inbox", path.value === APPROVALS)}
      {link(records, t("records"), "list", path.value.startsWith("/models/"))}
      <button type="button" class="bottom-link" onClick={() => (isOpen.value = true)}>
        <Icon name="search" size="l" />
        {t("palette")}
      </button>
      <button type="button" class="bottom-link" aria-expanded={isSheet.value} aria-controls="side" onClick={() => (isSheet.value = !isSheet.peek())}>
        <Icon name="ellipsis" size="l" />
        {t("more")}
      </button>
    </nav>
  );
}
