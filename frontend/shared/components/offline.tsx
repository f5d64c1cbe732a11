// Shows that the server cannot be reached, until it can be reached again.
import { isLost } from "../reach";
import { translator } from "../i18n";

const t = translator("common");

export function Offline() {
  return (
    <span role="status" class={isLost.value ? "chip warn" : "hidden-text"}>
      {isLost.value ? t("offline") : ""}
    </span>
  );
}
