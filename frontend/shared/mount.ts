// Mounts an app: its styles, its pages, its frame.
import "./tokens.css";
import "./fonts.css";
import "./frame.css";
import "./components.css";
import { type ComponentChild, render } from "preact";
import { siteState } from "./components/heading";
import { startRouter, type Route } from "./router";

/** Start the app in the page that the server sent. */
export function mount(title: string, routes: readonly Route[], frame: ComponentChild): void {
  siteState.title = title;
  startRouter(routes);
  const root = document.getElementById("app");
  if (root) {
    root.replaceChildren();
    render(frame, root);
  }
}
