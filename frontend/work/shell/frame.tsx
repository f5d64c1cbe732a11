// The frame of every page of the work app: sidebar, page, and the bottom bar on phones.
import { useEffect, useLayoutEffect } from "preact/hooks";
import { OfflineNotice } from "../../shared/components/offline";
import { NotFound, ShortcutSheet } from "../../shared/components/shell";
import { Icon } from "../../shared/components/icon";
import { Toasts } from "../../shared/components/toast";
import { currentRoute, go, path } from "../../shared/router";
import { isSheetOpen, registerShortcut } from "../../shared/shortcuts";
import { translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { currentUser, wasSignedIn } from "../current_user";
import { isOpen } from "../palette/entries";
import { BottomBar } from "./bottom_bar";
import { Sidebar } from "./sidebar";
import { isRail, isSheet, toggleRail } from "./sidebar_state";
import "./shell.css";

const tCommon = translator("common");
const t = translator("work");

function signedIn(): Meta | null {
  const user = currentUser.value;
  return user !== null && typeof user === "object" && "models" in user ? user : null;
}

export function Frame() {
  const meta = signedIn();
  const route = currentRoute.value;
  // The place of the sidebar stays free while the person is loaded, so that the page does not shift.
  const isWaiting = currentUser.value === null && wasSignedIn;
  useLayoutEffect(() => {
    const unregister = [
      registerShortcut({ key: "?", does: tCommon("keyboard.sheet"), run: () => (isSheetOpen.value = true) }),
      registerShortcut({ key: "[", does: t("rail"), run: toggleRail }),
      registerShortcut({ key: "/", does: t("palette"), run: () => (isOpen.value = true) }),
      registerShortcut({ key: "g h", does: t("home"), run: () => go("/") }),
      registerShortcut({ key: "g a", does: t("approvals"), run: () => go("/approvals") }),
      registerShortcut({ key: "g d", does: t("dashboard"), run: () => go("/dashboard") }),
    ];
    return () => unregister.forEach((remove) => remove());
  }, []);
  useEffect(() => {
    isSheet.value = false;
  }, [path.value]);
  useEffect(() => {
    if (!isSheet.value) {
      return undefined;
    }
    document.querySelector<HTMLElement>("#side a")?.focus();
    const leave = (event: KeyboardEvent) => event.key === "Escape" && (isSheet.value = false);
    document.addEventListener("keydown", leave);
    return () => document.removeEventListener("keydown", leave);
  }, [isSheet.value]);
  const classes = ["frame", !meta && !isWaiting && "bare", isRail.value && "rail", isSheet.value && "sheet"].filter(Boolean).join(" ");
  return (
    <div class={classes}>
      <a class="skip" href="#main">
        {tCommon("skip")}
      </a>
      {meta && <Sidebar meta={meta} />}
      {isWaiting && <div class="side" aria-hidden="true" />}
      {meta && <div class="sheet-ground" onClick={() => (isSheet.value = false)} />}
      {meta && (
        <button type="button" class="button plain square sheet-button" aria-label={t("menu")} aria-expanded={isSheet.value} aria-controls="side" onClick={() => (isSheet.value = true)}>
          <Icon name="panel-left" />
        </button>
      )}
      <main id="main" tabIndex={-1} key={path.value}>
        <OfflineNotice />
        {route ? route.route.page(route.values) : <NotFound />}
      </main>
      {meta && <BottomBar meta={meta} />}
      <ShortcutSheet />
      <Toasts />
    </div>
  );
}
