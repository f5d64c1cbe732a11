// How an entry starts: its styles, its pages, its frame.
import "./tokens.css";
import "./fonts.css";
import "./frame.css";
import "./components.css";
import { type ComponentChildren, render } from "preact";
import { siteState } from "./components/heading";
import { Shell } from "./components/shell";
import { startRouter, type Route } from "./router";

interface Entry {
  title: string;
  routes: readonly Route[];
  places: () => readonly (readonly [address: string, label: string])[];
  foot?: readonly (readonly [address: string, label: string])[];
  End: () => ComponentChildren;
}

/** Take over the page that the server sent. */
export function mountApp({ title, routes, places, foot, End }: Entry): void {
  siteState.title = title;
  startRouter(routes);
  const root = document.getElementById("app");
  if (root) {
    root.replaceChildren();
    render(<Shell places={places} foot={foot} end={<End />} />, root);
  }
}
