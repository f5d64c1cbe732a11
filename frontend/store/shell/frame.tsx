// The frame of the store: top bar, page, footer, and at phone width a bar of tabs at the bottom.
import { Overlays, Page, SkipLink } from "../../shared/components/shell";
import { path } from "../../shared/router";
import { Footer } from "./footer";
import { TabBar } from "./tab_bar";
import { TopBar } from "./top_bar";

export function Frame() {
  return (
    <>
      <SkipLink />
      <TopBar />
      <Page />
      <Footer />
      {/* At phone width, the page of a product has its own bar at the bottom. */}
      {!path.value.startsWith("/products/") && <TabBar />}
      <Overlays />
    </>
  );
}
