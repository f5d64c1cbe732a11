// What the sidebar has, for whoever is signed in: only what they may list or manage.
import type { IconName } from "../../shared/components/icon";
import { siteState } from "../../shared/components/heading";
import { translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { businessModels, canList, modelOf } from "../models";
import { managesPeople } from "../users/people";
import { modelIcon } from "./model_icons";
import { recordCounts } from "./record_counts";

const t = translator("work");

export interface NavigationEntry {
  address: string;
  label: string;
  icon: IconName;
  count?: number | undefined;
  /** How many things wait here for a signature. */
  waiting?: number;
}

export interface NavigationGroup {
  name: string;
  label: string;
  entries: NavigationEntry[];
}

export const APPROVALS = "/approvals";

export function firstEntries(): NavigationEntry[] {
  return [
    { address: "/", label: t("home"), icon: "house" },
    { address: APPROVALS, label: t("approvals"), icon: "inbox", waiting: siteState.waiting.value },
    { address: "/dashboard", label: t("dashboard"), icon: "layout-dashboard" },
  ];
}

export function moduleGroups(meta: Meta): NavigationGroup[] {
  const models = businessModels(meta);
  const counts = recordCounts.value;
  const groups = new Map<string, NavigationGroup>(meta.modules.map(({ name, label }) => [name, { name, label, entries: [] }]));
  for (const model of models) {
    const { name, plural } = model;
    const entry = { address: `/models/${name}`, label: plural, icon: modelIcon(model), count: counts[name] };
    groups.get(model.group ?? model.module)?.entries.push(entry);
  }
  return [...groups.values()].filter((each) => each.entries.length > 0);
}

export function automationGroup(meta: Meta): NavigationGroup {
  const audit = modelOf(meta, "audit_entry");
  return {
    name: "automation",
    label: t("automation"),
    entries: [
      { address: "/agents", label: t("agents"), icon: "bot" },
      { address: "/connect", label: t("connect"), icon: "plug" },
      ...(audit && canList(audit) ? [{ address: "/audit", label: t("audit"), icon: "history" } as const] : []),
    ],
  };
}

export function lastEntries(meta: Meta): NavigationEntry[] {
  const setting = modelOf(meta, "setting");
  return [
    ...(managesPeople(meta) ? [{ address: "/users", label: t("users"), icon: "users" } as const] : []),
    ...(setting && canList(setting) ? [{ address: "/models/setting", label: t("settings"), icon: "settings" } as const] : []),
  ];
}

/** Whether the page at this address belongs to an entry: its own page, or one below it. */
export function isAt(entry: string, address: string): boolean {
  return entry === "/" ? address === "/" : address === entry || address.startsWith(`${entry}/`);
}
