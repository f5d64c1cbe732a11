// Keyboard shortcuts. They can be switched off together (WCAG 2.2, 2.1.4).
import { signal } from "@preact/signals";

export interface Shortcut {
  /** A value of KeyboardEvent.key, or two values in sequence: "/", "j", "?", "g p". */
  key: string;
  does: string;
  /** Undefined if the page listens for the key itself: then it is only shown in the list of shortcuts. */
  run?: () => void;
}

const SWITCH = "countersign-keys-off";
const PATIENCE_MS = 1500;

let typedKeys = "";
let begunAt = 0;

export const shortcuts = signal<readonly Shortcut[]>([]);
export const areShortcutsDisabled = signal(localStorage.getItem(SWITCH) === "1");
export const isSheetOpen = signal(false);

/** Register a shortcut until the returned function is called; pages call this in an effect. */
export function registerShortcut(shortcut: Shortcut): () => void {
  shortcuts.value = [...shortcuts.peek(), shortcut];
  return () => {
    shortcuts.value = shortcuts.peek().filter((registered) => registered !== shortcut);
  };
}

export function disableShortcuts(isOff: boolean): void {
  areShortcutsDisabled.value = isOff;
  if (isOff) {
    localStorage.setItem(SWITCH, "1");
  } else {
    localStorage.removeItem(SWITCH);
  }
}

document.addEventListener("keydown", (event) => {
  const target = event.target instanceof HTMLElement ? event.target : null;
  const isWriting = target !== null && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  const isElsewhere = event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented;
  if (areShortcutsDisabled.peek() || isWriting || isElsewhere || document.querySelector("dialog[open]")) {
    return;
  }
  const pressedKeys = typedKeys && event.timeStamp - begunAt < PATIENCE_MS ? `${typedKeys} ${event.key}` : event.key;
  const isBeginning = shortcuts.peek().some((shortcut) => shortcut.run && shortcut.key.startsWith(`${pressedKeys} `));
  typedKeys = isBeginning ? pressedKeys : "";
  begunAt = event.timeStamp;
  // The newest shortcut wins, so that a page can override a shortcut of the frame.
  const shortcut = shortcuts.peek().findLast((shortcut) => shortcut.run && shortcut.key === pressedKeys);
  if (shortcut?.run) {
    event.preventDefault();
    shortcut.run();
  }
});
