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

const MAX_TABS = 6;

interface Props {
  meta: Meta;
  model: Model;
  total: number | null;
  /** The number of records without a filter, if it is known. */
  totalUnfiltered: number | undefined;
}

export function ViewTabs({ meta, model, total, totalUnfiltered }: Props) {
  const [isSaving, setSaving] = useState(false);
  const view = currentView();
  const savedViews = views.value;
  const address = `/models/${model.name}`;
  const entries = [{ label: t("views.all"), does: address }, ...savedViews.map((each) => ({ label: each.name, does: addressOfView(model.name, each) }))];
  const isAll = !view;
  const countOfAll = isAll && !currentSearch() ? (total ?? totalUnfiltered) : totalUnfiltered;
  const viewsModel = viewModel(meta);
  if (isNarrow.value) {
    return savedViews.length > 0 ? <Menu label={view?.name ?? t("views.all")} tight items={entries} /> : null;
  }
  return (
    <nav class="views" aria-label={t("views")}>
      <a href={address} aria-current={isAll ? "page" : undefined}>
        {t("views.all")}
        {countOfAll !== undefined && <span class="count-of">{number(countOfAll)}</span>}
      </a>
      {savedViews.slice(0, MAX_TABS).map((savedView) => (
        <a key={savedView.id} href={addressOfView(model.name, savedView)} aria-current={savedView === view ? "page" : undefined}>
          {savedView.isShared && <Icon name="users" size="s" />}
          {savedView.name}
          {savedView === view && total !== null && <span class="count-of">{number(total)}</span>}
        </a>
      ))}
      {savedViews.length > MAX_TABS && <Menu label={t("views.more")} tight items={entries.slice(MAX_TABS + 1)} />}
      {viewsModel && may(viewsModel, "create") && (
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
          <SaveView model={model} canShare={fieldOf(viewsModel, "shared")?.readonly === false} onDone={() => setSaving(false)} />
        </Popover>
      )}
    </nav>
  );
}

/** Run the function, and show an error as a toast. */
async function withErrorToast(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    showToast(Problem.from(error).message);
  }
}

function SaveView({ model, canShare, onDone }: { model: Model; canShare: boolean; onDone: () => void }) {
  const view = currentView();
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
      {view && !view.isForeign && (
        <Button look="risky" onClick={() => (onDone(), void remove(model, view))}>
          {t("views.remove", { name: view.name })}
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
  await withErrorToast(async () => {
    const restore = await removeView(model, view);
    go(`/models/${model.name}`, { replaces: true });
    showToast(t("views.removed", { name: view.name }), { label: t("undo"), run: () => void withErrorToast(async () => showSaved(model, await restore())) });
  });
}

/** The unsaved changes of the current view, with buttons to save or discard them. */
export function ViewChanged({ model }: { model: Model }) {
  const view = currentView();
  if (!view || !isViewChanged(model, view)) {
    return null;
  }
  return (
    <>
      <span class="quiet view-changed">{t("views.changed")}</span>
      {!view.isForeign && (
        <Button tight look="plain" onClick={() => void withErrorToast(async () => showSaved(model, await updateView(model, view)))}>
          <span class="accent">{t("views.update")}</span>
        </Button>
      )}
      <Button tight look="plain" onClick={() => go(addressOfView(model.name, view), { replaces: true })}>
        {t("views.reset")}
      </Button>
      <span class="tooth" />
    </>
  );
}

/** The favourite button for the current view, or for the list of all records. */
export function ListFavourite({ model }: { model: Model }) {
  const view = currentView();
  useEffect(() => {
    // A favourite contains only the view's id: add the query of the view to the address.
    if (view?.search && !currentSearch()) {
      go(addressOfView(model.name, view), { replaces: true });
    }
  }, [view?.id]);
  const path = `/models/${model.name}`;
  return view ? <FavouriteButton path={`${path}?${VIEW}=${view.id}`} name={`${model.plural}: ${view.name}`} /> : <FavouriteButton path={path} name={model.plural} />;
}
