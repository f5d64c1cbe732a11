// A button, a link that looks like a button, and a button that copies a text.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { showToast } from "../toast";
import { translator } from "../i18n";
import { Icon } from "./icon";

const t = translator("common");

/** `ink` is only for the button with which a person approves. */
export type ButtonVariant = "strong" | "risky" | "plain" | "ink";
/** `square` is for a button with only an icon, which needs an `aria-label`. */
export type ButtonSize = "tight" | "large" | "square" | "square tight" | "large full" | "full";

interface Props extends Omit<JSX.IntrinsicElements["button"], "ref" | "class"> {
  variant?: ButtonVariant;
  tight?: boolean;
  size?: ButtonSize | undefined;
  busy?: boolean;
  children: ComponentChildren;
}

function classes(variant: ButtonVariant | undefined, size: ButtonSize | false | undefined, busy = false): string {
  return ["button", variant, size, busy && "is-busy"].filter(Boolean).join(" ");
}

/** A view has at most one `strong` button. A busy button can be focused but does nothing. */
export function Button({ variant, tight = false, size, busy = false, children, onClick, type = "button", ...rest }: Props) {
  const press = busy ? (event: Event) => event.preventDefault() : onClick;
  return (
    <button {...rest} type={type} class={classes(variant, size ?? (tight && "tight"), busy)} aria-disabled={busy || undefined} onClick={press}>
      {children}
    </button>
  );
}

interface LinkProps {
  href: string;
  variant?: ButtonVariant;
  tight?: boolean;
  size?: ButtonSize | undefined;
  children: ComponentChildren;
  download?: boolean;
  onClick?: () => void;
}

export function LinkButton({ href, variant, tight = false, size, children, download, onClick }: LinkProps) {
  return (
    <a href={href} class={classes(variant, size ?? (tight && "tight"))} {...(onClick ? { onClick } : {})} {...(download ? { download: "" } : {})}>
      {children}
    </a>
  );
}

/** Copies a text to the clipboard; `of` names the text for screen readers. */
export function CopyButton({ text, name, label = t("copy") }: { text: string; name: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      showToast(t("copied"));
    } catch {
      showToast(t("copied.not"));
    }
  };
  return (
    <Button tight onClick={copy} aria-label={`${label}: ${name}`}>
      <Icon name={isDone ? "check" : "copy"} size="s" />
      {isDone ? t("copied") : label}
    </Button>
  );
}
