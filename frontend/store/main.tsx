// The store's pages. A new one: its address in paths.json, its line here, its file in pages/.
import { Design } from "../shared/design";
import { Button, LinkButton } from "../shared/components/button";
import { mountApp } from "../shared/entry";
import { go, path } from "../shared/router";
import { isSignedIn, loadSession } from "../shared/session";
import { registerShortcut } from "../shared/shortcuts";
import { LazyPage } from "./lazy_page";
import { isPublisher, me } from "./me";
import { Home } from "./pages/home";
import { Product } from "./pages/product";
import { addIcons } from "../shared/components/icon";
import { ICONS } from "./icons";
import "./store.css";

import { translator } from "../shared/i18n";

const tCommon = translator("common");
const t = translator("store");

function End() {
  if (isSignedIn.value === null) {
    return null;
  }
  if (!isSignedIn.value) {
    return <LinkButton href={`/auth/signin?return_to=${encodeURIComponent(path.value)}`}>{tCommon("sign.in")}</LinkButton>;
  }
  return (
    <>
      {isPublisher.value && <a href="/publisher" aria-current={path.value === "/publisher" ? "page" : undefined}>{t("publisher")}</a>}
      {me.value?.email && <span class="small quiet who">{me.value.email}</span>}
      <form method="post" action="/auth/signout" onSubmit={() => sessionStorage.clear()}>
        <Button type="submit">{tCommon("sign.out")}</Button>
      </form>
    </>
  );
}

const places = [
  ["/", t("products"), "g p"],
  ["/library", t("library"), "g l"],
  ["/following", t("following"), "g f"],
  ["/redeem", t("redeem"), "g r"],
  ["/questions", t("ask"), "g a"],
  ["/keys", t("keys"), "g k"],
] as const;
for (const [address, label, key] of places) {
  registerShortcut({ key, does: label, run: () => go(address) });
}

const publisher = () => import("./publisher/pages");
addIcons(ICONS);
void loadSession();
mountApp({
  title: "Countersign",
  routes: [
    { template: "/", page: () => <Home /> },
    { template: "/products/{slug}", page: ({ slug }) => <Product slug={slug ?? ""} /> },
    { template: "/library", page: () => <LazyPage load={async () => (await import("./pages/library")).Library} props={{}} /> },
    { template: "/redeem", page: () => <LazyPage load={async () => (await import("./pages/redeem")).Redeem} props={{}} /> },
    { template: "/following", page: () => <LazyPage load={async () => (await import("./pages/following")).Following} props={{}} /> },
    { template: "/questions", page: () => <LazyPage load={async () => (await import("./pages/ask")).Ask} props={{}} /> },
    { template: "/keys", page: () => <LazyPage load={async () => (await import("./pages/keys")).Keys} props={{}} /> },
    { template: "/publisher", page: () => <LazyPage load={async () => (await publisher()).Overview} props={{}} /> },
    { template: "/publisher/new", page: () => <LazyPage load={async () => (await publisher()).NewProduct} props={{}} /> },
    {
      template: "/publisher/products/{slug}",
      page: ({ slug }) => <LazyPage load={async () => (await publisher()).ManageProduct} props={{ slug: slug ?? "" }} />,
    },
    {
      template: "/publisher/products/{slug}/releases/{version}",
      page: ({ slug, version }) => (
        <LazyPage load={async () => (await publisher()).ManageRelease} props={{ slug: slug ?? "", version: version ?? "" }} />
      ),
    },
    { template: "/design", page: () => <Design /> },
  ],
  places: () => places.map(([address, label]) => [address, label] as const),
  foot: [
    ["/wiki.json", t("manual")],
    ["/openapi.json", "OpenAPI"],
    ["/auth.md", t("for.agents")],
  ],
  End,
});
