// The views of a list as tabs: all records, then declared and saved views. Views that do not fit are in a menu.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { FormErrors, TextField } from "../../shared/components/field";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { Problem } from "../../shared/problem";
import { go } from "../../shared/router";
import { showToast } from "../../shared/toast";
import { number, translator } from "../../shared/i18n";
import type { Meta, Model } from "../api";
import { fieldOf, mayRun } from "../models";
import { isNarrow } from "../screen_size";
import { FavouriteButton } from "../shell/favourite_button";
import { Popover } from "../popover";
import { addressOfAll, addressOfView, addressWithQuery, currentSearch, currentView, isViewChanged, removeView, saveView, updateView, type View, VIEW_PARAM, viewModel, views } from "./saved_views";
import { countKey, loadViewCounts, viewCounts } from "./view_counts";

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
  const address = addressOfAll(model);
  const [nav, maxTabs] = useFittingTabs(savedViews.length);
  // On a phone, the declared views and the current one are tabs, and the menu has the others.
  const isTab = (tab: View, index: number) => tab === view || (isNarrow.value ? tab.isDeclared : index < maxTabs);
  const tabs = savedViews.filter(isTab);
  const inMenu = savedViews.filter((savedView) => !tabs.includes(savedView));
  useEffect(() => loadViewCounts(model, tabs), [model.name, tabs.map((tab) => tab.search).join()]);
  const countOf = (countedView: View) => (countedView === view && total !== null ? total : viewCounts.value[countKey(model, countedView)]);
  const isAll = !view;
  const countOfAll = isAll && !currentSearch() ? (total ?? totalUnfiltered) : totalUnfiltered;
  const viewsModel = viewModel(meta);
  if (isNarrow.value && savedViews.length === 0) {
    return null;
  }
  return (
    <nav class="views" aria-label={t("views")} ref={nav}>
      <a href={address} aria-current={isAll ? "page" : undefined}>
        {t("views.all")}
        {countOfAll !== undefined && <span class="count-of">{number(countOfAll)}</span>}
      </a>
      {tabs.map((savedView) => (
        <a key={savedView.id} href={addressOfView(model.name, savedView)} aria-current={savedView === view ? "page" : undefined}>
          {savedView.isShared && <Icon name="users" size="s" />}
          {savedView.name}
          {countOf(savedView) !== undefined && <span class="count-of">{number(countOf(savedView) ?? 0)}</span>}
        </a>
      ))}
      {inMenu.length > 0 && (
        <Menu label={t("views.more")} tight {...(isNarrow.value ? { opener: <Icon name="chevron-down" /> } : {})} items={inMenu.map((view) => ({ label: view.name, does: addressOfView(model.name, view) }))} />
      )}
      {viewsModel && mayRun(viewsModel, "create") && !isNarrow.value && (
        <Popover
          isOpen={isSaving}
          onClose={() => setSaving(false)}
          label={t("views")}
          opener={
            <Button id="panel-views" size="square tight" variant="plain" aria-label={t("views.new")} title={t("views.new")} aria-expanded={isSaving} onClick={() => setSaving(!isSaving)}>
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

/** The row of tabs, and how many views fit into it. */
function useFittingTabs(viewCount: number): [RefObject<HTMLElement | null>, number] {
  const nav = useRef<HTMLElement>(null);
  const [maxTabs, setMaxTabs] = useState(MAX_TABS);
  const isOverflowing = () => {
    const [row, lastTab] = [nav.current?.getBoundingClientRect(), nav.current?.lastElementChild?.getBoundingClientRect()];
    return !isNarrow.peek() && row !== undefined && lastTab !== undefined && lastTab.right > row.right + 1;
  };
  useLayoutEffect(() => {
    if (maxTabs > 0 && isOverflowing()) {
      setMaxTabs(maxTabs - 1);
    }
  });
  useEffect(() => {
    const reset = () => setMaxTabs(MAX_TABS);
    reset();
    addEventListener("resize", reset);
    return () => removeEventListener("resize", reset);
  }, [viewCount]);
  return [nav, maxTabs];
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
      {problem && <FormErrors problem={problem} />}
      <TextField name="view-name" label={t("views.name")} value={name} maxLength={60} onInput={(event) => setName(event.currentTarget.value)} />
      {canShare && (
        <label class="row tick">
          <input type="checkbox" checked={isShared} onChange={(event) => setShared(event.currentTarget.checked)} />
          {t("views.share")}
        </label>
      )}
      <Button type="submit" variant="strong">
        {t("views.save")}
      </Button>
      {view && !view.isReadOnly && (
        <Button variant="risky" onClick={() => (onDone(), void remove(model, view))}>
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
    go(addressOfAll(model), { replaces: true });
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
      {!view.isReadOnly && (
        <Button tight variant="plain" onClick={() => void withErrorToast(async () => showSaved(model, await updateView(model, view)))}>
          <span class="accent">{t("views.update")}</span>
        </Button>
      )}
      <Button tight variant="plain" onClick={() => go(addressOfView(model.name, view), { replaces: true })}>
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
      go(addressWithQuery(model.name, view), { replaces: true });
    }
  }, [view?.id]);
  return view ? <FavouriteButton path={`/models/${model.name}?${VIEW_PARAM}=${view.id}`} name={`${model.plural}: ${view.name}`} /> : <FavouriteButton path={addressOfAll(model)} name={model.plural} />;
}
