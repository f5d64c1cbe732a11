// Whether the window is as narrow as a phone. Lists then have rows of two lines.
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 760px)");
export const isNarrow = signal(query.matches);
query.addEventListener("change", () => (isNarrow.value = query.matches));
export const isCoarse = matchMedia("(pointer: coarse)").matches;
