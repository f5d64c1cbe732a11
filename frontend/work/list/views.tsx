// The views of a list as tabs: all records, then saved views. Views that do not fit are in a menu.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Faults, TextField } from "../../shared/components/field";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { Problem } from "../../shared/problem";
import { go } from "../../shared/router";
import { showToast } from "../../shared/toast";
import { number, translator } from "../../shared/i18n";
import type { Meta, Model } from "../api";
import { fieldOf, may } from "../models";
import { isNarrow } from "../narrow";
import { FavouriteButton } from "../shell/favourite_button";
import { Popover } from "../popover";
import { addressOfView, currentSearch, currentView, isViewChanged, removeView, saveView, updateView, type View, VIEW, viewModel, views } from "./saved_views";

const t = translator("list");

const MOST = 6;

interface Props {
  meta: Meta;
  model: Model;
  total: number | null;
  /** The number of records without a filter, if it is known. */
  all: number | undefined;
}

export function ViewTabs({ meta, model, total, all }: Props) {
  const [isSaving, setSaving] = useState(false);
  const at = currentView();
  const shown = views.value;
  const address = `/models/${model.name}`;
  const entries = [{ label: t("views.all"), does: address }, ...shown.map((each) => ({ label: each.name, does: addressOfView(model.name, each) }))];
  const isAll = !at;
  const kept = viewModel(meta);
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
      {kept && may(kept, "create") && (
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
          <SaveView model={model} canShare={fieldOf(kept, "shared")?.readonly === false} onDone={() => setSaving(false)} />
        </Popover>
      )}
    </nav>
  );
}

/** Run the function, and show an error as a toast. */
async function tried(does: () => Promise<void>): Promise<void> {
  try {
    await does();
  } catch (error) {
    showToast(Problem.from(error).message);
  }
}

function SaveView({ model, canShare, onDone }: { model: Model; canShare: boolean; onDone: () => void }) {
  const at = currentView();
  const [name, setName] = useState("");
  const [isShared, setShared] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    if (!name.trim()) {
      return;
    }
    try {
      showSaved(model, await saveView(model, name.trim(), isShared));
      onDone();
    } catch (error) {
      setProblem(Problem.from(error));
    }
  };
  return (
    <form class="stack tight" onSubmit={(event) => void save(event)}>
      <p class="small quiet">{t("views.text")}</p>
      {problem && <Faults problem={problem} />}
      <TextField name="view-name" label={t("views.name")} value={name} maxLength={60} onInput={(event) => setName(event.currentTarget.value)} />
      {canShare && (
        <label class="row tick">
          <input type="checkbox" checked={isShared} onChange={(event) => setShared(event.currentTarget.checked)} />
          {t("views.share")}
        </label>
      )}
      <Button type="submit" look="strong">
        {t("views.save")}
      </Button>
      {at && !at.isFixed && (
        <Button look="risky" onClick={() => (onDone(), void remove(model, at))}>
          {t("views.remove", { name: at.name })}
        </Button>
      )}
    </form>
  );
}

function showSaved(model: Model, view: View | undefined): void {
  if (view) {
    go(addressOfView(model.name, view), { replaces: true });
  } else {
    showToast(t("proposed"));
  }
}

async function remove(model: Model, view: View): Promise<void> {
  await tried(async () => {
    const restore = await removeView(model, view);
    go(`/models/${model.name}`, { replaces: true });
    showToast(t("views.removed", { name: view.name }), { label: t("undo"), run: () => void tried(async () => showSaved(model, await restore())) });
  });
}

/** The unsaved changes of the current view, with buttons to save or discard them. */
export function ViewChanged({ model }: { model: Model }) {
  const at = currentView();
  if (!at || !isViewChanged(model, at)) {
    return null;
  }
  return (
    <>
      <span class="quiet view-changed">{t("views.changed")}</span>
      {!at.isFixed && (
        <Button tight look="plain" onClick={() => void tried(async () => showSaved(model, await updateView(model, at)))}>
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

/** The favourite button for the current view, or for the list of all records. */
export function ListFavourite({ model }: { model: Model }) {
  const at = currentView();
  useEffect(() => {
    // A favourite contains only the view's id: add the query of the view to the address.
    if (at?.search && !currentSearch()) {
      go(addressOfView(model.name, at), { replaces: true });
    }
  }, [at?.id]);
  const path = `/models/${model.name}`;
  return at ? <FavouriteButton path={`${path}?${VIEW}=${at.id}`} name={`${model.plural}: ${at.name}`} /> : <FavouriteButton path={path} name={model.plural} />;
}
