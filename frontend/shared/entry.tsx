// How an entry with the shared frame starts.
import type { ComponentChildren } from "preact";
import { Shell } from "./components/shell";
import { mount } from "./mount";
import type { Route } from "./router";

interface Entry {
  title: string;
  routes: readonly Route[];
  places: () => readonly (readonly [address: string, label: string])[];
  foot?: readonly (readonly [address: string, label: string])[];
  End: () => ComponentChildren;
}

export function mountApp({ title, routes, places, foot, End }: Entry): void {
  mount(title, routes, <Shell places={places} foot={foot} end={<End />} />);
}
