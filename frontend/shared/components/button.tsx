// What is pressed: a button, a link that looks like one, and the button that copies.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { showToast } from "../toast";
import { translator } from "../i18n";

const t = translator("common");

export type ButtonLook = "strong" | "risky" | "plain";

interface Props extends Omit<JSX.IntrinsicElements["button"], "ref" | "class"> {
  look?: ButtonLook;
  tight?: boolean;
  busy?: boolean;
  children: ComponentChildren;
}

function classes(look: ButtonLook | undefined, tight: boolean, busy = false): string {
  return ["button", look, tight && "tight", busy && "is-busy"].filter(Boolean).join(" ");
}

/** At most one `strong` button in a view: the one a person signs with. A busy one stays in reach and does nothing. */
export function Button({ look, tight = false, busy = false, children, onClick, type = "button", ...rest }: Props) {
  const pressed = busy ? (event: Event) => event.preventDefault() : onClick;
  return (
    <button {...rest} type={type} class={classes(look, tight, busy)} aria-disabled={busy || undefined} onClick={pressed}>
      {children}
    </button>
  );
}

interface LinkProps {
  href: string;
  look?: ButtonLook;
  tight?: boolean;
  children: ComponentChildren;
  download?: boolean;
  onClick?: () => void;
}

export function LinkButton({ href, look, tight = false, children, download, onClick }: LinkProps) {
  return (
    <a href={href} class={classes(look, tight)} {...(onClick ? { onClick } : {})} {...(download ? { download: "" } : {})}>
      {children}
    </a>
  );
}

/** Puts a text on the clipboard; `of` says what it is to who does not see it. */
export function CopyButton({ text, of, label = t("copy") }: { text: string; of: string; label?: string }) {
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
    <Button tight onClick={copy} aria-label={`${label}: ${of}`}>
      {isDone ? t("copied") : label}
    </Button>
  );
}
