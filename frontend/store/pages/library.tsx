// What the person owns: updates first, then all of it as cards or as a list, searched while one types, with the downloads
// of each and what they note.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { LinkButton } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Icon, type IconName } from "../../shared/components/icon";
import { Empty, Failed } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { setQuery, query } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { plural, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { noted } from "../downloaded_versions";
import { me } from "../me";
import { RequireSignIn } from "../require_sign_in";
import { filterAndSort, ORDERS } from "../library/filter_and_sort";
import { LibraryCard, LibraryRow, UpdateCard } from "../library/library_card";
import { moveKeptNotes } from "../library/kept_notes";
import { collections, library, loadLibrary } from "../library/library_state";
import { NotesEditor } from "../library/notes_editor";
import { updateOf } from "../library/update_of";
import { Files } from "../product/downloads";
import { SideNav } from "../side_nav";
import { CardBones } from "../skeleton";
import "../side_nav.css";
import "../library/library.css";

const tCommon = translator("common");
const tLibrary = translator("library");
const t = translator("store");

type Owned = Schemas["Owned"];

const KINDS = ["game", "app", "tool"] as const;
const ICON_OF: Readonly<Record<Kind, IconName>> = { game: "gamepad-2", app: "app-window", tool: "wrench" };

type Kind = (typeof KINDS)[number];

export function Library() {
  return (
    <div class="wrap">
      {me.value ? (
        <Shown />
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

function Shown() {
  const { problem, reload } = useLibrary();
  const owned = library.value;
  const [words, setWords] = useState(query.value.get("q") ?? "");
  const [openedId, setOpened] = useState<string | null>(null);
  const opened = owned?.find((each) => each.id === openedId) ?? null;
  useLayoutEffect(
    () => registerShortcut({ key: "/", does: tCommon("keyboard.search"), run: () => document.getElementById("find")?.focus() }),
    [],
  );
  const hasHidden = useRef(false);
  useEffect(() => {
    // The card of what was hidden is gone, and with it what the keyboard was on.
    if (opened === null && hasHidden.current) {
      hasHidden.current = false;
      document.getElementById("find")?.focus();
    }
  }, [opened]);
  const type = (value: string) => {
    setWords(value);
    setQuery({ q: value.trim() });
  };
  return (
    <div class="sided library">
      <div class="library-head">
        <Heading title={t("library")} />
        <form class="row right" role="search" onSubmit={(event) => event.preventDefault()}>
          <Icon name="search" />
          <TextField
            name="find"
            type="search"
            label={t("library.search")}
            placeholder={t("library.search")}
            value={words}
            onInput={(event) => type(event.currentTarget.value)}
          />
          <LinkButton href="/redeem" look="strong">
            <Icon name="ticket" />
            {t("redeem")}
          </LinkButton>
        </form>
      </div>
      <div class="side-column">{owned && owned.length > 0 && <Places owned={owned} />}</div>
      <div class="library-main">
        {problem && <Failed problem={problem} onRetry={reload} />}
        {!problem && !owned && <CardBones count={10} />}
        {!problem && owned && !owned.length && (
          <Empty title={t("library.none")} icon="library">
            <p>{t("library.none.text")}</p>
            <LinkButton href="/browse?access=free">{t("home.free")}</LinkButton>
          </Empty>
        )}
        {!problem && owned && owned.length > 0 && <Sections owned={owned} words={words} onOpen={(product) => setOpened(product.id)} />}
      </div>
      <Dialog title={opened?.title ?? ""} isOpen={opened !== null} onClose={() => setOpened(null)} look="wide">
        {opened && (
          <>
            <h3>{t("downloads")}</h3>
            <Files id={opened.id} />
            <h3>{tLibrary("shelf")}</h3>
            <NotesEditor product={opened} onHidden={() => ((hasHidden.current = true), setOpened(null))} />
          </>
        )}
      </Dialog>
    </div>
  );
}

/** What is in the library, by kind and by collection. */
function Places({ owned }: { owned: readonly Owned[] }) {
  const shown = owned.filter((each) => !each.hidden);
  const hidden = owned.length - shown.length;
  const now = (name: string) => query.value.get(name) ?? "";
  const isAll = !["kind", "update", "collection", "hidden"].some(now);
  const updates = shown.filter((each) => updateOf(each)).length;
  return (
    <SideNav
      label={t("library")}
      groups={[
        {
          places: [
            { address: "/library", label: t("all.kinds"), icon: "library", isCurrent: isAll, count: shown.length },
            { address: "/library?update=1", label: tLibrary("updates"), icon: "download", isCurrent: now("update") === "1", count: updates },
            ...KINDS.map((each) => ({
              address: `/library?kind=${each}`,
              label: t(`kinds.${each}`),
              icon: ICON_OF[each],
              isCurrent: now("kind") === each,
              count: shown.filter((one) => one.kind === each).length,
            })),
          ],
        },
        {
          title: tLibrary("collections"),
          places: collections.value.map(({ id, name }) => ({
            address: `/library?collection=${encodeURIComponent(name)}`,
            label: name,
            icon: "folder" as const,
            isCurrent: now("collection") === name,
            count: shown.filter((each) => each.collections.includes(id)).length,
          })),
        },
        {
          title: tLibrary("more"),
          places:
            hidden > 0 || now("hidden")
              ? [{ address: "/library?hidden=1", label: tLibrary("library.hidden"), icon: "eye-off" as const, isCurrent: now("hidden") === "1", count: hidden }]
              : [],
        },
      ]}
    />
  );
}

interface SectionsProps {
  owned: readonly Owned[];
  words: string;
  onOpen: (product: Owned) => void;
}

function Sections({ owned, words, onOpen }: SectionsProps) {
  const fitting = filterAndSort(owned, words);
  const updates = owned.filter((each) => !each.hidden && updateOf(each));
  const isList = query.value.get("view") === "list";
  const isWhole = !["q", "kind", "update", "collection", "hidden"].some((name) => query.value.get(name));
  const kind = KINDS.find((each) => each === query.value.get("kind"));
  const title = query.value.get("collection") || (kind ? t(`kinds.${kind}`) : "");
  const named = query.value.get("hidden") ? tLibrary("library.hidden") : query.value.get("update") ? tLibrary("updates.available") : t("all.products");
  return (
    <>
      {isWhole && updates.length > 0 && (
        <section class="library-section" aria-labelledby="updates">
          <div class="toolbar">
            <h2 id="updates">{tLibrary("updates.available")}</h2>
            <span class="quiet">{plural(updates.length, t("library.one"), t("library.many"))}</span>
          </div>
          <ul class="updates">
            {updates.map((each) => (
              <UpdateCard key={each.id} product={each} onOpen={onOpen} />
            ))}
          </ul>
        </section>
      )}
      <section class="library-section" aria-labelledby="products">
        <div class="toolbar">
          <h2 id="products">{title || named}</h2>
          <span role="status" class="quiet">
            {plural(fitting.length, t("library.one"), t("library.many"))}
          </span>
          <span class="right row">
            <Order />
            <span class="segments" role="group" aria-label={t("view")}>
              {(["grid", "list"] as const).map((each) => (
                <button
                  key={each}
                  type="button"
                  aria-pressed={isList === (each === "list")}
                  aria-label={t(`view.${each}`)}
                  onClick={() => setQuery({ view: each === "list" ? each : "" })}
                >
                  <Icon name={each === "grid" ? "layout-grid" : "list"} />
                </button>
              ))}
            </span>
          </span>
        </div>
        {fitting.length ? (
          <ul class={isList ? "product-rows panel-box" : "cards library-cards"}>
            {fitting.map((each, place) =>
              isList ? (
                <LibraryRow key={each.id} product={each} onOpen={onOpen} />
              ) : (
                <LibraryCard key={each.id} product={each} isFirst={place < 10} onOpen={onOpen} />
              ),
            )}
          </ul>
        ) : (
          <Empty title={t("none")} icon="search">
            <LinkButton href="/library">{t("none.clear")}</LinkButton>
          </Empty>
        )}
      </section>
    </>
  );
}

function Order() {
  return (
    <select
      class="input"
      aria-label={t("sort")}
      value={query.value.get("order") ?? ""}
      onChange={(event) => setQuery({ order: event.currentTarget.value })}
    >
      {ORDERS.map((each) => (
        <option key={each} value={each} selected={each === (query.value.get("order") ?? "")}>
          {tLibrary(`library.order.${each}`)}
        </option>
      ))}
    </select>
  );
}

/** Reads the library, and again when a download was noted. */
function useLibrary() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setProblem(null);
    loadLibrary(controller.signal)
      .then(async () => (await moveKeptNotes()) && setRound((before) => before + 1))
      .catch((error: unknown) => controller.signal.aborted || setProblem(Problem.from(error)));
    return () => controller.abort();
  }, [round, noted.value]);
  return { problem, reload: () => setRound(round + 1) };
}
