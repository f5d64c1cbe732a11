// Chips: a state with its dot, a kind, or a masked value.
import type { ComponentChildren } from "preact";
import { translator } from "../i18n";
import { Icon } from "./icon";

const t = translator("common");

export type Tone = "good" | "info" | "cyan" | "violet" | "warn" | "bad";

interface Props {
  tone?: Tone | undefined;
  /** Without the dot, for chips that show no state. */
  plain?: boolean;
  children: ComponentChildren;
}

export function Chip({ tone, plain = false, children }: Props) {
  return <span class={["chip", tone, plain && "plain"].filter(Boolean).join(" ")}>{children}</span>;
}

/** A placeholder token that stands for a value, also when it is copied and sent back. */
export function MaskedValue({ token, label }: { token: string; label: string }) {
  return (
    <span class="chip masked" title={t("masked", { label })}>
      <span class="hidden-text">{t("masked", { label })} </span>
      {token}
    </span>
  );
}

/** Shown for a value that the person may not read. An empty cell would mean that there is no value. */
export function NotPermitted() {
  return (
    <span class="chip">
      <Icon name="lock" size="s" />
      {t("denied")}
    </span>
  );
}
