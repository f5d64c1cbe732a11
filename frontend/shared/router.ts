// The router: addresses, the back button, the title, and the focus after a change of page.
import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";

export interface Route {
  /** The path template; `{name}` is a value. The entry's paths.json must have the same template for the server. */
  template: string;
  page: (values: Record<string, string>) => JSX.Element;
}

export const path = signal(location.pathname);
export const query = signal(new URLSearchParams(location.search));

let routes: readonly (Route & { pattern: RegExp })[] = [];
let hasMoved = false;

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

/** Start the router: links to these pages change the page without loading; other links load as usual. */
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
  hasMoved ||= path.peek() !== location.pathname;
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

/** Keep the state of a page in its address: set these parameters, and remove empty ones. */
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

/** The heading of a page calls this when it appears. After a change of page it gets the focus, so that the keyboard and
 *  screen readers continue from it. */
export function focusHeading(heading: HTMLElement): void {
  if (hasMoved) {
    hasMoved = false;
    heading.focus({ preventScroll: true });
  }
}
