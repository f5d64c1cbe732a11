// The icon of a model and of a field: as declared, else by its module or its kind.
import type { IconName } from "../../shared/components/icon";
import type { Field, Model } from "../api";
import { workflowField } from "../models";

const BY_MODEL: Record<string, IconName> = {
  lead: "briefcase",
  activity: "calendar",
  party: "building",
  address: "folder",
  ticket: "life-buoy",
  invoice: "circle-dollar-sign",
  payment: "arrow-left-right",
  product: "package",
};
const BY_MODULE: Record<string, IconName> = { crm: "briefcase", party: "building", helpdesk: "life-buoy", billing: "circle-dollar-sign" };
const BY_KIND: Record<string, IconName> = {
  bool: "toggle-left",
  date: "calendar",
  moment: "clock",
  number: "hash",
  money: "circle-dollar-sign",
  select: "list-filter",
  ref: "link",
  longtext: "scroll-text",
  structure: "layers",
};
const BY_WORD: [RegExp, IconName][] = [
  [/mail/, "mail"],
  [/phone/, "phone"],
  [/contact|name|requester/, "user"],
  [/website|url/, "external-link"],
];

/** What the declaration asks for is shown where this app has the icon. */
export function modelIcon(model: Model | undefined): IconName {
  return (model?.icon as IconName | undefined) ?? BY_MODEL[model?.name ?? ""] ?? BY_MODULE[model?.module ?? ""] ?? "box";
}

export function fieldIcon(model: Model, field: Field): IconName {
  if (field.name === workflowField(model)?.name) {
    return "target";
  }
  if (field.ref === "user") {
    return "user";
  }
  return (field.kind === "text" ? BY_WORD.find(([words]) => words.test(field.name))?.[1] : BY_KIND[field.kind]) ?? "type";
}
