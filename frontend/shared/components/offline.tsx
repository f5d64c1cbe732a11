// Shows that the server cannot be reached, until it can be reached again.
import { isServerUnreachable } from "../connectivity";
import { translator } from "../i18n";

const t = translator("common");

export function OfflineNotice() {
  return (
    <span role="status" class={isServerUnreachable.value ? "chip warn" : "hidden-text"}>
      {isServerUnreachable.value ? t("offline") : ""}
    </span>
  );
}
