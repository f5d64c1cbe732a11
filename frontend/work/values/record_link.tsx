// A link to a referenced record by its title; a short id if this person may not see it.
import { MaskedValue } from "../../shared/components/chip";
import type { Model } from "../api";
import { addressOf, fieldOf, mayRun, titleOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { Avatar } from "./avatar";
import { translator } from "../../shared/i18n";

const t = translator("values");

export function RecordLink({ model, id, isCell = false }: { model: Model | undefined; id: string; isCell?: boolean }) {
  const record = model ? referencedRecord(model, id).value : null;
  if (!model || !record) {
    return <span class="quiet">{t("ref.hidden", { id: id.slice(0, 8) })}</span>;
  }
  const field = fieldOf(model, model.shown_as);
  const title = record[model.shown_as];
  const isPerson = model.name === "user";
  const name = field?.masked && title ? <MaskedValue token={String(title)} label={field.label} /> : titleOf(model, record);
  const content = isPerson ? (
    <span class="person">
      <Avatar name={title ? String(title) : model.label} />
      {name}
    </span>
  ) : (
    name
  );
  if (isPerson || !mayRun(model, "get")) {
    return <>{content}</>;
  }
  return (
    <a href={addressOf(model.name, id)} {...(isCell ? { tabIndex: -1 } : {})}>
      {name}
    </a>
  );
}
