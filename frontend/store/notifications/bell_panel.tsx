// The panel of the bell with the latest notifications. Showing them marks them as seen.
import { useEffect } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { RequestResult } from "../../shared/components/states";
import { translator } from "../../shared/i18n";
import { api } from "../api";
import { NotificationList } from "./notification_list";
import { markSeen } from "./unseen";

const t = translator("notifications");

const MAX_SHOWN = 6;

export function BellPanel({ onLeave }: { onLeave: () => void }) {
  const request = useRequest(async (signal) => (await api.get("/api/v1/me/notifications", { query: { limit: MAX_SHOWN }, signal })).value.items, []);
  useEffect(() => {
    if (request.state === "loaded") {
      void markSeen();
    }
  }, [request.state]);
  return (
    <>
      <RequestResult request={request}>
        {(items) => (items.length ? <NotificationList items={items} onFollow={onLeave} /> : <p class="bell-none quiet">{t("none.text")}</p>)}
      </RequestResult>
      <p class="bell-all">
        <a href="/notifications" onClick={onLeave}>
          {t("all")}
        </a>
      </p>
    </>
  );
}
