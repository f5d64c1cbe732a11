// The library: updates first, then all products as cards or a list, with search, downloads and notes.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button, LinkButton } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { Empty, FailureNotice } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { setQuery, query } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { number, plural, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { recordedDownloads } from "../downloaded_versions";
import { me } from "../me";
import { RequireSignIn } from "../require_sign_in";
import { filterAndSort, ORDERS } from "../library/filter_and_sort";
import { CollectionDialog } from "../library/collection_dialog";
import { LibraryCard, LibraryRow } from "../library/library_card";
import { moveLocalNotes } from "../library/move_local_notes";
import { collections, library, loadLibrary } from "../library/library_state";
import { NotesEditor } from "../library/notes_editor";
import { KINDS, LibraryNavigation } from "../library/library_navigation";
import { Updates } from "../library/updates";
import { updateOf } from "../library/newer_version";
import { Files } from "../product/downloads";
import { CardBones } from "../skeleton";
import "../side_nav.css";
import "../library/library.css";

const tCommon = translator("common");
const tLibrary = translator("library");
const t = translator("store");

type Owned = Schemas["Owned"];

export function Library() {
  return (
    <div class="wrap">
      {me.value ? (
        <LibraryContent />
      ) : (
        <>
          <Heading title={t("library")}>
            <a href="/redeem">{t("redeem")}</a>
          </Heading>
          <RequireSignIn>{null}</RequireSignIn>
        </>
      )}
    </div>
  );
}

function LibraryContent() {
  const { problem, reload } = useLibrary();
  const owned = library.value;
  const [words, setWords] = useState(query.value.get("q") ?? "");
  const [openedId, setOpened] = useState<string | null>(null);
  const openedProduct = owned?.find((product) => product.id === openedId) ?? null;
  const [isSearching, setSearching] = useState(words !== "");
  // On phones the search field is hidden until its button is pressed.
  const find = () => (setSearching(true), setTimeout(() => document.getElementById("find")?.focus()));
  useLayoutEffect(() => registerShortcut({ key: "/", does: tCommon("keyboard.search"), run: find }), []);
  const hasHidden = useRef(false);
  useEffect(() => {
    // The card of the hidden product is gone, and it had the focus.
    if (openedProduct === null && hasHidden.current) {
      hasHidden.current = false;
      find();
    }
  }, [openedProduct]);
  const type = (value: string) => {
    setWords(value);
    setQuery({ q: value.trim() });
  };
  return (
    <div class="sided library">
      <div class="library-head">
        <Heading title={t("library")} />
        <div class="row right">
          <button type="button" class="find-opener" aria-expanded={isSearching} aria-controls="find-form" aria-label={t("library.search")} onClick={() => (isSearching ? setSearching(false) : find())}>
            <Icon name="search" />
          </button>
          <form id="find-form" class={isSearching ? "is-open" : undefined} role="search" onSubmit={(event) => event.preventDefault()}>
            <Icon name="search" />
            <TextField
              name="find"
              type="search"
              label={t("library.search")}
              placeholder={t("library.search")}
              value={words}
              onInput={(event) => type(event.currentTarget.value)}
            />
          </form>
          <LinkButton href="/redeem" variant="strong">
            <Icon name="ticket" />
            {t("redeem")}
          </LinkButton>
        </div>
      </div>
      <div class="side-column">{owned && owned.length > 0 && <LibraryNavigation products={owned} />}</div>
      <div class="library-main">
        {problem && <FailureNotice problem={problem} onRetry={reload} />}
        {!problem && !owned && <CardBones count={10} />}
        {!problem && owned && !owned.length && (
          <Empty title={t("library.none")} icon="library">
            <p>{t("library.none.text")}</p>
            <LinkButton href="/browse?access=free">{t("home.free")}</LinkButton>
          </Empty>
        )}
        {!problem && owned && owned.length > 0 && <Sections owned={owned} words={words} onOpen={(product) => setOpened(product.id)} />}
      </div>
      <Dialog title={openedProduct?.title ?? ""} isOpen={openedProduct !== null} onClose={() => setOpened(null)} variant="wide">
        {openedProduct && (
          <>
            <h3>{t("downloads")}</h3>
            <Files id={openedProduct.id} />
            <h3>{tLibrary("shelf")}</h3>
            <NotesEditor product={openedProduct} onHidden={() => ((hasHidden.current = true), setOpened(null))} />
          </>
        )}
      </Dialog>
    </div>
  );
}

interface SectionsProps {
  owned: readonly Owned[];
  words: string;
  onOpen: (product: Owned) => void;
}

function Sections({ owned, words, onOpen }: SectionsProps) {
  const fitting = filterAndSort(owned, words);
  const updates = owned.filter((product) => !product.hidden && updateOf(product));
  const isList = query.value.get("view") === "list";
  const now = (name: string) => query.value.get(name) ?? "";
  const isWhole = !["q", "kind", "update", "collection", "access", "hidden"].some(now);
  const isUpdates = now("update") === "1";
  const [isNaming, setNaming] = useState(false);
  const collection = collections.value.find((collection) => collection.name === now("collection"));
  useFocusAfterUpdates(updates.length);
  if (isUpdates && updates.length > 0) {
    return <Updates updates={fitting} onOpen={onOpen} />;
  }
  return (
    <>
      {isWhole && updates.length > 0 && <Updates updates={updates} onOpen={onOpen} />}
      <section class="library-section" aria-labelledby="products">
        <div class="toolbar">
          <h2 id="products" tabIndex={-1}>
            {nameOfView()}
          </h2>
          <span role="status" class="quiet">
            <span aria-hidden="true">{number(fitting.length)}</span>
            <span class="hidden-text">{plural(fitting.length, t("library.one"), t("library.many"))}</span>
          </span>
          {collection && (
            <Button variant="plain" size="square" aria-haspopup="dialog" aria-label={tLibrary("collection.edit")} onClick={() => setNaming(true)}>
              <Icon name="pencil" />
            </Button>
          )}
          <span class="right row">
            <Order />
            <span class={isList ? "segments" : "segments wide-only"} role="group" aria-label={t("view")}>
              {(["grid", "list"] as const).map((layout) => (
                <button
                  key={layout}
                  type="button"
                  aria-pressed={isList === (layout === "list")}
                  aria-label={t(`view.${layout}`)}
                  onClick={() => setQuery({ view: layout === "list" ? layout : "" })}
                >
                  <Icon name={layout === "grid" ? "layout-grid" : "list"} />
                </button>
              ))}
            </span>
          </span>
        </div>
        {fitting.length ? (
          <ul class={isList ? "product-rows panel-box" : "cards library-cards"}>
            {fitting.map((product, place) =>
              isList ? (
                <LibraryRow key={product.id} product={product} onOpen={onOpen} />
              ) : (
                <LibraryCard key={product.id} product={product} isFirst={place < 10} onOpen={onOpen} />
              ),
            )}
          </ul>
        ) : (
          <Nothing isEmpty={!words && Boolean(collection)} />
        )}
      </section>
      <CollectionDialog isOpen={isNaming} onClose={() => setNaming(false)} collection={collection} />
    </>
  );
}

/** The heading above the products, by the address. */
function nameOfView(): string {
  const now = (name: string) => query.value.get(name) ?? "";
  const kind = KINDS.find((kind) => kind === now("kind"));
  const others = [
    [now("collection"), now("collection")],
    [kind, kind && t(`kinds.${kind}`)],
    [now("hidden"), tLibrary("library.hidden")],
    [now("update"), tLibrary("updates.available")],
    [now("access"), t("entitled")],
  ];
  return others.find(([isChosen]) => isChosen)?.[1] ?? t("all.products");
}

/** The message if no product is shown: an empty collection has another message than a search without results. */
function Nothing({ isEmpty }: { isEmpty: boolean }) {
  return (
    <Empty title={isEmpty ? tLibrary("collection.empty") : t("none")} icon={isEmpty ? "folder" : "search"}>
      {isEmpty && <p>{tLibrary("collection.empty.text")}</p>}
      <LinkButton href="/library">{isEmpty ? t("all.products") : t("none.clear")}</LinkButton>
    </Empty>
  );
}

/** When a focused update is done, focus the next update, or the products. */
function useFocusAfterUpdates(count: number): void {
  const previousCount = useRef(count);
  useLayoutEffect(() => {
    if (count < previousCount.current && document.activeElement === document.body) {
      (document.querySelector<HTMLElement>(".updates button") ?? document.getElementById("products"))?.focus({ preventScroll: true });
    }
    previousCount.current = count;
  }, [count]);
}

function Order() {
  return (
    <select
      class="input"
      aria-label={t("sort")}
      value={query.value.get("order") ?? ""}
      onChange={(event) => setQuery({ order: event.currentTarget.value })}
    >
      {ORDERS.map((order) => (
        <option key={order} value={order} selected={order === (query.value.get("order") ?? "")}>
          {tLibrary(`library.order.${order}`)}
        </option>
      ))}
    </select>
  );
}

/** Load the library, and load it again after a download was recorded. */
function useLibrary() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setProblem(null);
    loadLibrary(controller.signal)
      .then(async () => (await moveLocalNotes()) && setRound((current) => current + 1))
      .catch((error: unknown) => controller.signal.aborted || setProblem(Problem.from(error)));
    return () => controller.abort();
  }, [round, recordedDownloads.value]);
  return { problem, reload: () => setRound(round + 1) };
}
