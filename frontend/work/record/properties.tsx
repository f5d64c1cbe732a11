// The fields of a record in groups. Opening a field makes it editable in place.
import type { ComponentChildren } from "preact";
import { Button } from "../../shared/components/button";
import { NotPermitted } from "../../shared/components/chip";
import { Icon, type IconName } from "../../shared/components/icon";
import type { Problem } from "../../shared/problem";
import type { Field, Meta, Model, Row } from "../api";
import { modelOf, workflowField } from "../models";
import { fieldIcon, modelIcon } from "../shell/model_icons";
import { Control } from "../values/control";
import { valueToText } from "../values/field_text";
import { Value } from "../values/value";
import type { Texts } from "./draft";
import { translator } from "../../shared/i18n";

const tValues = translator("values");
const t = translator("record");

/** The icons of contact fields, in the order in which the fields are shown. */
const CONTACT_ICONS: readonly IconName[] = ["user", "building-2", "mail", "phone", "external-link"];

interface Props {
  meta: Meta;
  model: Model;
  fields: readonly Field[];
  /** The names of the fields that are hidden from this person. */
  denied: readonly string[];
  record: Row;
  texts: Texts;
  /** The fields that are open for editing. */
  openFields: ReadonlySet<string>;
  problem: Problem | null;
  onOpen: (name: string) => void;
  onText: (name: string, text: string) => void;
  onKeep: (name: string) => void;
}

/** The fields by group heading, without the title field, which is in the heading of the page. */
function groupsOf(meta: Meta, model: Model, fields: readonly Field[]): [string, Field[]][] {
  const isLong = (field: Field) => ["longtext", "structure"].includes(field.kind);
  const iconOf = (field: Field) => propertyIcon(meta, model, field);
  const isContact = (field: Field) => (field.kind === "text" || iconOf(field) === "building-2") && CONTACT_ICONS.includes(iconOf(field));
  const contactFields = fields.filter((field) => isContact(field) && field.name !== model.shown_as).sort((leftField, otherField) => CONTACT_ICONS.indexOf(iconOf(leftField)) - CONTACT_ICONS.indexOf(iconOf(otherField)));
  const hasContact = contactFields.filter((contactField) => contactField.kind === "text").length > 1;
  const mainFields = fields.filter((field) => !isLong(field) && !(hasContact && contactFields.includes(field))).sort((leftField, otherField) => rank(model, leftField) - rank(model, otherField));
  const longFields = fields.filter(isLong);
  const groups: [string, Field[]][] = hasContact ? [[t("group.main"), mainFields], [t("group.contact"), contactFields]] : [[t("group.main"), mainFields]];
  return [...groups, ...longFields.map((longField): [string, Field[]] => [longField.label, [longField]])].filter(([, groupFields]) => groupFields.length > 0);
}

/** The position of a field in a record with a workflow: name, state, amounts, dates, then other fields. */
function rank(model: Model, field: Field): number {
  const stage = workflowField(model);
  const index = stage ? [field.name === model.shown_as, field === stage, field.kind === "money", field.kind === "date"].indexOf(true) : 0;
  return index < 0 ? Number.MAX_SAFE_INTEGER : index;
}

/** The icon of a reference is the icon of the model to which it refers. */
function propertyIcon(meta: Meta, model: Model, field: Field): IconName {
  const target = field.ref && field.ref !== "user" ? modelOf(meta, field.ref) : undefined;
  return target ? modelIcon(target) : fieldIcon(model, field);
}

export function Properties(props: Props) {
  const { meta, model, fields, denied, record, openFields, texts } = props;
  const isTitle = (field: Field) => field.name === model.shown_as && field.kind === "text" && Boolean(record[field.name]);
  const shownFields = fields.filter((field) => !isTitle(field) || openFields.has(field.name) || field.name in texts);
  return (
    <>
      {groupsOf(meta, model, shownFields).map(([label, groupFields], index) => (
        <section key={label} class="props" aria-label={label}>
          <h2>{label}</h2>
          {groupFields.map((field) => (
            <Property key={field.name} {...props} field={field} isLabelHidden={groupFields.length === 1 && ["longtext", "structure"].includes(field.kind)} />
          ))}
          {index === 0 &&
            denied.map((name) => (
              <div key={name} class="prop fact">
                <span class="prop-name">
                  <Icon name="lock" size="s" />
                  {name.replaceAll("_", " ")}
                </span>
                <div class="prop-value">
                  <NotPermitted />
                </div>
              </div>
            ))}
        </section>
      ))}
    </>
  );
}

interface PropertyProps extends Props {
  field: Field;
  /** Whether to omit the label, because the heading says the same. */
  isLabelHidden: boolean;
}

function Property({ meta, model, field, record, texts, openFields, problem, isLabelHidden, onOpen, onText, onKeep }: PropertyProps) {
  const value = record[field.name];
  const isOpen = !field.readonly && (openFields.has(field.name) || field.name in texts);
  const error = problem?.fieldErrors.find((error) => error.field === field.name)?.detail;
  const isFilledMask = field.masked && value !== null && value !== undefined;
  const classes = ["prop", isLabelHidden && "wide", isOpen && "open"].filter(Boolean).join(" ");
  const label = (
    <>
      <Icon name={propertyIcon(meta, model, field)} size="s" />
      <span class="cut" title={field.label}>
        {field.label}
      </span>
    </>
  );
  const open = () => (isFilledMask ? onText(field.name, "") : onOpen(field.name));
  if (isOpen) {
    const text = texts[field.name] ?? (field.masked ? "" : valueToText(field, value));
    const help = isFilledMask ? tValues("masked.new") : field.help;
    const describedBy = [help && `${field.name}-help`, error && `${field.name}-fault`].filter(Boolean).join(" ") || undefined;
    return (
      <div class={classes}>
        <label class="prop-name" for={field.name}>
          {label}
        </label>
        <div class="prop-value">
          <div class="row nowrap">
            <Control
              {...{ meta, field, text }}
              given={{ id: field.name, name: field.name, class: "input", required: field.required, "aria-invalid": error ? true : undefined, "aria-describedby": describedBy }}
              makes
              canBeEmpty={!field.required}
              onText={(newText) => onText(field.name, newText)}
            />
            {isFilledMask && (
              <Button tight onClick={() => onKeep(field.name)}>
                {tValues("keep")}
              </Button>
            )}
          </div>
          {help && (
            <span class="help" id={`${field.name}-help`}>
              {help}
            </span>
          )}
          {error && (
            <span class="fault" id={`${field.name}-fault`}>
              {error}
            </span>
          )}
        </div>
      </div>
    );
  }
  const isEmpty = value === null || value === undefined || value === "";
  return (
    <div class={classes}>
      <span class="prop-name">{label}</span>
      <EditableValue canEdit={!field.readonly} label={field.label} onOpen={open}>
        {isEmpty ? <span class="quiet">{t("empty")}</span> : <LinkedValue {...{ meta, model, field }} value={value} />}
      </EditableValue>
    </div>
  );
}

/** A value. An e-mail address and a phone number are links, unless they have characters that such a link does not need. */
function LinkedValue({ meta, model, field, value }: Pick<PropertyProps, "meta" | "model" | "field"> & { value: unknown }) {
  const icon = fieldIcon(model, field);
  const text = String(value);
  const isMail = icon === "mail" && /^[\w.+-]+@[\w-]+(\.[\w-]+)+$/.test(text);
  const isPhone = icon === "phone" && /^\+?[\d ()/.-]{3,}$/.test(text);
  if (field.masked || !(isMail || isPhone)) {
    return <Value meta={meta} field={field} value={value} />;
  }
  return (
    <a class="cut reach" href={isMail ? `mailto:${text}` : `tel:${text.replace(/[^\d+]/g, "")}`} title={text}>
      {text}
    </a>
  );
}

/** A value that opens for editing when it or its button is pressed. Links in it still work. */
function EditableValue({ canEdit, label, onOpen, children }: { canEdit: boolean; label: string; onOpen: () => void; children: ComponentChildren }) {
  if (!canEdit) {
    return <div class="prop-value">{children}</div>;
  }
  const handleClick = (event: MouseEvent) => {
    const isLinkOrSelection = (event.target as Element).closest("a, button") !== null || String(getSelection() ?? "") !== "";
    if (!isLinkOrSelection) {
      onOpen();
    }
  };
  return (
    <div class="prop-value can-edit" onClick={handleClick}>
      {children}
      <button type="button" class="prop-edit" aria-label={t("edit.field", { label })} onClick={onOpen}>
        <Icon name="pencil" size="s" />
      </button>
    </div>
  );
}
