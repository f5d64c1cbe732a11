// A small word beside something: a state, a kind, a value that is masked.
import type { ComponentChildren } from "preact";
import { translator } from "../i18n";

const t = translator("common");

export type Tone = "good" | "warn" | "bad";

export function Chip({ tone, children }: { tone?: Tone | undefined; children: ComponentChildren }) {
  return <span class={tone ? `chip ${tone}` : "chip"}>{children}</span>;
}

/** A placeholder that stands for a value: copied and sent back, it still does. */
export function MaskedValue({ token, label }: { token: string; label: string }) {
  return (
    <span class="chip masked" title={t("masked", { label })}>
      <span class="hidden-text">{t("masked", { label })} </span>
      {token}
    </span>
  );
}

/** A value that is not shown at all; never an empty cell, which would say that there is none. */
export function NotPermitted() {
  return (
    <span class="chip">
      <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
        <path d="M3 5V4a3 3 0 0 1 6 0v1h1v6H2V5zm1.500 0h3V4a1.500 1.500 0 0 0-3 0z" fill="currentColor" />
      </svg>
      {t("denied")}
    </span>
  );
}
