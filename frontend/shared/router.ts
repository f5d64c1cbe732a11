// The router shows the page of the address, handles links and the back button, and moves the focus to the new page.
import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";

export interface Route {
  /** The path template, such as `/products/{slug}`. The server needs the same template in paths.json. */
  template: string;
  page: (values: Record<string, string>) => JSX.Element;
}

export const path = signal(location.pathname);
export const query = signal(new URLSearchParams(location.search));

let routes: readonly (Route & { pattern: RegExp })[] = [];
let hasNavigated = false;

/** The route of the current address, and its values. */
export const currentRoute = computed(() => matchRoute(path.value));

function matchRoute(address: string) {
  for (const route of routes) {
    const match = route.pattern.exec(address);
    if (match) {
      const values = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]);
      return { route, values: Object.fromEntries(values) as Record<string, string> };
    }
  }
  return null;
}

/** Start the router. Links to these routes show the page without loading a document; other links load as usual. */
export function startRouter(newRoutes: readonly Route[]): void {
  routes = newRoutes.map((route) => ({
    ...route,
    pattern: new RegExp(`^${route.template.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`),
  }));
  path.value = location.pathname;
  addEventListener("popstate", readLocation);
  document.addEventListener("click", followLink);
}

function readLocation(): void {
  hasNavigated ||= path.peek() !== location.pathname;
  query.value = new URLSearchParams(location.search);
  path.value = location.pathname;
}

function followLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) {
    return;
  }
  const url = new URL(link.href, location.href);
  if (url.origin === location.origin && !url.hash && matchRoute(url.pathname)) {
    event.preventDefault();
    go(url.pathname + url.search);
  }
}

/** Go to another page. */
export function go(address: string, { replaces = false }: { replaces?: boolean } = {}): void {
  history[replaces ? "replaceState" : "pushState"](null, "", address);
  readLocation();
  scrollTo(0, 0);
}

/** Change the query of the address, which keeps the state of the page. Empty values remove their parameters. */
export function setQuery(changes: Record<string, string | undefined>, { replaces = true }: { replaces?: boolean } = {}): void {
  const parameters = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) {
      parameters.set(name, value);
    } else {
      parameters.delete(name);
    }
  }
  const search = parameters.toString();
  const address = location.pathname + (search ? `?${search}` : "");
  history[replaces ? "replaceState" : "pushState"](null, "", address);
  query.value = parameters;
}

/** Focus the heading of a page that was opened by the router, so that keyboard and screen reader continue there. Each
 *  heading calls this function when it appears. On the first page, the focus stays unchanged. */
export function focusHeading(heading: HTMLElement): void {
  if (hasNavigated) {
    hasNavigated = false;
    heading.focus({ preventScroll: true });
  }
}
