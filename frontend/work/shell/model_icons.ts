// The icons of models and fields: as declared, or else by kind.
import { hasIcon, type IconName } from "../../shared/components/icon";
import type { Field, Model } from "../api";
import { workflowField } from "../models";

const BY_KIND: Record<string, IconName> = {
  bool: "toggle-left",
  date: "calendar",
  moment: "clock",
  number: "hash",
  decimal: "hash",
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

/** The declared icon, if this app has it. */
export function modelIcon(model: Model | undefined): IconName {
  return model?.icon && hasIcon(model.icon) ? (model.icon as IconName) : "box";
}

export function fieldIcon(model: Model, field: Field): IconName {
  if (field.name === workflowField(model)?.name) {
    return "circle-dot";
  }
  if (field.ref === "user") {
    return "user";
  }
  return (field.kind === "text" ? BY_WORD.find(([pattern]) => pattern.test(field.name))?.[1] : BY_KIND[field.kind]) ?? "type";
}
