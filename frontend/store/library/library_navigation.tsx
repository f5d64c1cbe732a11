// The navigation of the library: all products, updates, kinds, collections, hidden products.
import { useState } from "preact/hooks";
import { Icon, type IconName } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { query } from "../../shared/router";
import { number, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { SideNav, type SideLink } from "../side_nav";
import { CollectionDialog } from "./collection_dialog";
import { collections } from "./library_state";
import { updateOf } from "./newer_version";

const tLibrary = translator("library");
const t = translator("store");

type OwnedProduct = Schemas["Owned"];
export type Kind = (typeof KINDS)[number];

export const KINDS = ["game", "app", "tool"] as const;
/** The number of entries shown beside the menu on phones. */
const SHOWN_ON_PHONES = 3;
const ICON_OF: Readonly<Record<Kind, IconName>> = { game: "gamepad-2", app: "app-window", tool: "wrench" };

export function LibraryNavigation({ products }: { products: readonly OwnedProduct[] }) {
  const [isNaming, setNaming] = useState(false);
  const { main, ofCollections, more: otherCollections } = navigationLinks(products);
  const otherPlaces = [...main.slice(SHOWN_ON_PHONES), ...ofCollections, ...otherCollections];
  const currentPlace = otherPlaces.find((otherPlace) => otherPlace.isCurrent);
  const create = () => setNaming(true);
  return (
    <>
      <SideNav
        label={t("library")}
        groups={[
          { places: main },
          {
            title: tLibrary("collections"),
            places: ofCollections,
            action: (
              <button type="button" aria-haspopup="dialog" onClick={create}>
                <Icon name="plus" />
                {tLibrary("collection.new")}
              </button>
            ),
          },
          { title: tLibrary("more"), places: otherCollections },
        ]}
      />
      {/* On phones one line in place of the column: the places that do not fit are in a menu. */}
      <nav class={currentPlace ? "place-line is-other" : "place-line"} aria-label={t("library")}>
        {main.slice(0, SHOWN_ON_PHONES).map((shownPlace) => (
          <a key={shownPlace.address} href={shownPlace.address} aria-current={shownPlace.isCurrent ? "page" : undefined}>
            {labelWithCount(shownPlace)}
          </a>
        ))}
        <Menu
          label={currentPlace ? labelWithCount(currentPlace) : tLibrary("more")}
          items={[
            ...otherPlaces.map((place) => ({ label: labelWithCount(place), does: place.address, icon: place.icon })),
            { label: tLibrary("collection.new"), does: create, icon: "plus" },
          ]}
        />
      </nav>
      <CollectionDialog isOpen={isNaming} onClose={() => setNaming(false)} />
    </>
  );
}

const labelWithCount = ({ label, count }: SideLink) => `${label} ${number(count ?? 0)}`;

function navigationLinks(products: readonly OwnedProduct[]): Readonly<Record<"main" | "ofCollections" | "more", readonly SideLink[]>> {
  const shownProducts = products.filter((product) => !product.hidden);
  const count = (isIn: (product: OwnedProduct) => boolean) => shownProducts.filter(isIn).length;
  const currentValue = (name: string) => query.value.get(name) ?? "";
  const isAll = !["kind", "update", "collection", "access", "hidden"].some(currentValue);
  const placeOf = (name: string, value: string, label: string, icon: IconName, productCount: number): SideLink => ({
    address: `/library?${new URLSearchParams({ [name]: value })}`,
    label,
    icon,
    isCurrent: currentValue(name) === value,
    count: productCount,
  });
  return {
    main: [
      { address: "/library", label: t("all.kinds"), icon: "library", isCurrent: isAll, count: shownProducts.length },
      placeOf("update", "1", tLibrary("updates"), "download", count((product) => updateOf(product) !== undefined)),
      ...KINDS.map((kind) => placeOf("kind", kind, t(`kinds.${kind}`), ICON_OF[kind], count((product) => product.kind === kind))),
    ],
    ofCollections: collections.value.map(({ id, name }) => placeOf("collection", name, name, "folder", count((product) => product.collections.includes(id)))),
    more: [
      placeOf("access", "entitled", t("entitled"), "key-round", count((product) => product.access === "entitled")),
      placeOf("hidden", "1", tLibrary("library.hidden"), "eye-off", products.length - shownProducts.length),
    ],
  };
}
