// The views of a list as tabs: all records, then saved ones; those that do not fit are in a menu.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { TextField } from "../../shared/components/field";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { go } from "../../shared/router";
import { number, translator } from "../../shared/i18n";
import type { Model } from "../api";
import { isNarrow } from "../narrow";
import { Popover } from "../popover";
import { addressOfView, currentSearch, currentView, removeView, saveView, updateView, views } from "./saved_views";

const t = translator("list");

const MOST = 6;

interface Props {
  model: Model;
  total: number | null;
  /** How many records there are without any filter, where it is known. */
  all: number | undefined;
}

export function ViewTabs({ model, total, all }: Props) {
  const [isSaving, setSaving] = useState(false);
  const at = currentView();
  const shown = views.value;
  const address = `/models/${model.name}`;
  const entries = [{ label: t("views.all"), does: address }, ...shown.map((each) => ({ label: each.name, does: addressOfView(model.name, each) }))];
  const isAll = !at;
  if (isNarrow.value) {
    return shown.length > 0 ? <Menu label={at?.name ?? t("views.all")} tight items={entries} /> : null;
  }
  return (
    <nav class="views" aria-label={t("views")}>
      <a href={address} aria-current={isAll ? "page" : undefined}>
        {t("views.all")}
        {(isAll && !currentSearch() ? (total ?? all) : all) !== undefined && <span class="count-of">{number((isAll && !currentSearch() ? (total ?? all) : all) ?? 0)}</span>}
      </a>
      {shown.slice(0, MOST).map((each) => (
        <a key={each.id} href={addressOfView(model.name, each)} aria-current={each === at ? "page" : undefined}>
          {each.isShared && <Icon name="users" size="s" />}
          {each.name}
          {each === at && total !== null && <span class="count-of">{number(total)}</span>}
        </a>
      ))}
      {shown.length > MOST && <Menu label={t("views.more")} tight items={entries.slice(MOST + 1)} />}
      <Popover
        isOpen={isSaving}
        onClose={() => setSaving(false)}
        label={t("views")}
        opener={
          <Button id="panel-views" size="square tight" look="plain" aria-label={t("views.new")} title={t("views.new")} aria-expanded={isSaving} onClick={() => setSaving(!isSaving)}>
            <Icon name="plus" size="s" />
          </Button>
        }
      >
        <SaveView model={model} onDone={() => setSaving(false)} />
      </Popover>
    </nav>
  );
}

function SaveView({ model, onDone }: { model: Model; onDone: () => void }) {
  const [name, setName] = useState("");
  const at = currentView();
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    if (name.trim()) {
      const id = saveView(model.name, name.trim());
      const view = views.peek().find((each) => each.id === id);
      onDone();
      if (view) {
        go(addressOfView(model.name, view), { replaces: true });
      }
    }
  };
  return (
    <form class="stack tight" onSubmit={save}>
      <p class="small quiet">{t("views.text")}</p>
      <TextField name="view-name" label={t("views.name")} value={name} maxLength={60} onInput={(event) => setName(event.currentTarget.value)} />
      <Button type="submit" look="strong">
        {t("views.save")}
      </Button>
      {at && !at.isFixed && (
        <Button
          look="risky"
          onClick={() => {
            removeView(model.name, at);
            onDone();
            go(`/models/${model.name}`, { replaces: true });
          }}
        >
          {t("views.remove", { name: at.name })}
        </Button>
      )}
    </form>
  );
}

/** What was changed of the view in front, with what can be done about it. */
export function ViewChanged({ model }: { model: Model }) {
  const at = currentView();
  if (!at || at.search === currentSearch()) {
    return null;
  }
  return (
    <>
      <span class="quiet view-changed">{t("views.changed")}</span>
      {!at.isFixed && (
        <Button tight look="plain" onClick={() => updateView(model.name, at)}>
          <span class="accent">{t("views.update")}</span>
        </Button>
      )}
      <Button tight look="plain" onClick={() => go(addressOfView(model.name, at), { replaces: true })}>
        {t("views.reset")}
      </Button>
      <span class="tooth" />
    </>
  );
}
