// The entries of the sidebar: what the signed-in person may list or manage.
import type { IconName } from "../../shared/components/icon";
import { query } from "../../shared/router";
import { siteState } from "../../shared/components/heading";
import { translator } from "../../shared/i18n";
import type { Meta, Model } from "../api";
import { businessModels, canList, modelOf } from "../models";
import { managesPeople } from "../users/people";
import { favourites } from "./favourites";
import { modelIcon } from "./model_icons";
import { recordCounts } from "./record_counts";

const t = translator("work");

export interface NavigationEntry {
  address: string;
  label: string;
  icon: IconName;
  count?: number | undefined;
  /** The number of pending approvals. */
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

/** The person's favourites as one group, or no group if there are none. */
export function favouriteGroups(meta: Meta): NavigationGroup[] {
  const entries = (favourites.value ?? []).map(({ path, name }) => {
    const model = modelOf(meta, /^\/models\/(\w+)/.exec(path)?.[1] ?? "");
    return { address: path, label: name, icon: model ? modelIcon(model) : ("star" as const) };
  });
  return entries.length > 0 ? [{ name: "favourites", label: t("favourites"), entries }] : [];
}

/** The models, each after the models of its group that it refers to: leads before their activities. */
function byReference(models: readonly Model[]): Model[] {
  const groupOf = (model: Model) => model.group ?? model.module;
  const depthOf = (model: Model, seen: readonly Model[] = []): number => {
    const targets = models.filter((target) => groupOf(target) === groupOf(model) && ![...seen, model].includes(target) && model.fields.some((field) => field.ref === target.name));
    return Math.max(-1, ...targets.map((target) => depthOf(target, [...seen, model]))) + 1;
  };
  return models.map((model) => ({ model, depth: depthOf(model) })).toSorted((a, b) => a.depth - b.depth).map(({ model }) => model);
}

export function moduleGroups(meta: Meta): NavigationGroup[] {
  const models = byReference(businessModels(meta));
  const counts = recordCounts.value;
  const groups = new Map<string, NavigationGroup>(meta.modules.map(({ name, label }) => [name, { name, label, entries: [] }]));
  for (const model of models) {
    const { name, plural } = model;
    const entry = { address: `/models/${name}`, label: plural, icon: modelIcon(model), count: counts[name] };
    groups.get(model.group ?? model.module)?.entries.push(entry);
  }
  return [...groups.values()].filter((group) => group.entries.length > 0);
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
    ...(managesPeople(meta)
      ? ([
          { address: "/users", label: t("users"), icon: "users" },
          { address: "/data", label: t("data"), icon: "eye" },
        ] as const)
      : []),
    ...(setting && canList(setting) ? [{ address: "/models/setting", label: t("settings"), icon: "settings" } as const] : []),
  ];
}

/** Whether the address is the entry's page or below it. For a view, the list must show that view. */
export function isAt(entry: string, address: string): boolean {
  const [page = "", view] = entry.split("?view=");
  if (view !== undefined) {
    return address === page && query.value.get("view") === view;
  }
  return entry === "/" ? address === "/" : address === entry || address.startsWith(`${entry}/`);
}
