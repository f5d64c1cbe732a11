// The store's pages. To add a page, add its address to paths.json, a line here and a file in pages/.
import { addReply, send } from "../shared/client";
import { addIcons } from "../shared/components/icon";
import { mount } from "../shared/mount";
import { loadSession, loadWhenReachable } from "../shared/session";
import { setSignInPage } from "../shared/sign_in_page";
import { ICONS } from "./icons";
import { LazyPage } from "./lazy_page";
import { Browse } from "./pages/browse";
import { Home } from "./pages/home";
import { Product } from "./pages/product";
import { Frame } from "./shell/frame";
import "./shell.css";
import "./catalog.css";
import "./product.css";
import "./publisher_page.css";

const publisher = () => import("./publisher/pages");
let publisherPage: typeof import("./pages/publisher_page") | null = null;
const loadPublisherPage = async () => (publisherPage = await import("./pages/publisher_page")).PublisherPage;
addIcons(ICONS);
setSignInPage("/auth/signin");
void loadWhenReachable(loadSession);
if (document.querySelector("#app .hero")) {
  // Keep the front page that the server rendered until all its data is loaded.
  const target = "/api/v1/store/home";
  const answer = await send("GET", target).catch(() => null);
  if (answer) {
    addReply(target, await answer.json());
  }
}
if (document.querySelector("#app .publisher-page")) {
  await loadPublisherPage().catch(() => null);
}
mount(
  "Countersign",
  [
    { template: "/", page: () => <Home /> },
    { template: "/browse", page: () => <Browse /> },
    { template: "/products/{slug}", page: ({ slug }) => <Product slug={slug ?? ""} /> },
    {
      template: "/publishers/{slug}",
      page: ({ slug }) => (publisherPage ? <publisherPage.PublisherPage slug={slug ?? ""} /> : <LazyPage load={loadPublisherPage} props={{ slug: slug ?? "" }} />),
    },
    { template: "/library", page: () => <LazyPage load={async () => (await import("./pages/library")).Library} props={{}} /> },
    { template: "/redeem", page: () => <LazyPage load={async () => (await import("./pages/redeem")).Redeem} props={{}} /> },
    { template: "/following", page: () => <LazyPage load={async () => (await import("./pages/following")).Following} props={{}} /> },
    { template: "/notifications", page: () => <LazyPage load={async () => (await import("./pages/notifications")).Notifications} props={{}} /> },
    { template: "/questions", page: () => <LazyPage load={async () => (await import("./pages/ask")).Ask} props={{}} /> },
    { template: "/keys", page: () => <LazyPage load={async () => (await import("./pages/keys")).Keys} props={{}} /> },
    { template: "/account", page: () => <LazyPage load={async () => (await import("./pages/account")).Account} props={{}} /> },
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
    { template: "/design", page: () => <LazyPage load={async () => (await import("../shared/design")).Design} props={{}} /> },
  ],
  <Frame />,
);
