// A small word beside something: a state with its dot, a kind, a value that is masked.
import type { ComponentChildren } from "preact";
import { translator } from "../i18n";
import { Icon } from "./icon";

const t = translator("common");

export type Tone = "good" | "info" | "cyan" | "violet" | "warn" | "bad";

interface Props {
  tone?: Tone | undefined;
  /** Without the dot, for what is no state. */
  plain?: boolean;
  children: ComponentChildren;
}

export function Chip({ tone, plain = false, children }: Props) {
  return <span class={["chip", tone, plain && "plain"].filter(Boolean).join(" ")}>{children}</span>;
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
      <Icon name="lock" size="s" />
      {t("denied")}
    </span>
  );
}
