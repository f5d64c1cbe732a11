// All notifications of the last 90 days: releases of what the person follows, updates, and redeemed codes.
import { useEffect, useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button, LinkButton } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { Empty, RequestResult } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { showToast } from "../../shared/toast";
import { translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { NotificationList } from "../notifications/notification_list";
import { markSeen } from "../notifications/unseen";
import { RequireSignIn } from "../require_sign_in";
import { SettingsArea } from "../settings_area";

const t = translator("notifications");
const tStore = translator("store");

type Page = Schemas["NotificationList"];

const PAGE_SIZE = 30;

export function Notifications() {
  return (
    <SettingsArea current="/notifications">
      <div class="notifications">
        <Heading title={t("title")} />
        <RequireSignIn>
          <FirstPage />
        </RequireSignIn>
      </div>
    </SettingsArea>
  );
}

function FirstPage() {
  const request = useRequest(async (signal) => (await api.get("/api/v1/me/notifications", { query: { limit: PAGE_SIZE }, signal })).value, []);
  useEffect(() => {
    if (request.state === "loaded") {
      void markSeen();
    }
  }, [request.state]);
  return <RequestResult request={request}>{(page) => <AllPages firstPage={page} />}</RequestResult>;
}

function AllPages({ firstPage }: { firstPage: Page }) {
  const [more, setMore] = useState<Page[]>([]);
  const [isBusy, setBusy] = useState(false);
  const pages = [firstPage, ...more];
  const items = pages.flatMap((page) => page.items);
  const cursor = pages.at(-1)?.next_cursor;
  const loadNext = async () => {
    if (!cursor || isBusy) {
      return;
    }
    setBusy(true);
    try {
      const nextPage = (await api.get("/api/v1/me/notifications", { query: { limit: PAGE_SIZE, cursor } })).value;
      setMore((pages) => [...pages, nextPage]);
    } catch (error) {
      showToast(Problem.from(error).message);
    } finally {
      setBusy(false);
    }
  };
  if (!items.length) {
    return (
      <Empty title={t("none")} icon="bell">
        <p>{t("none.text")}</p>
        <LinkButton href="/browse">{tStore("browse")}</LinkButton>
      </Empty>
    );
  }
  return (
    <>
      <div class="panel-box">
        <NotificationList items={items} />
      </div>
      {cursor && (
        <div class="list-end">
          <Button busy={isBusy} onClick={loadNext}>
            {t("more")}
          </Button>
        </div>
      )}
    </>
  );
}
