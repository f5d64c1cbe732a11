// What is typed into a form is kept in the tab until it is sent: a reload, an ended session or a lost network take nothing.
import { useState } from "preact/hooks";

interface Typing<Value> {
  value: Value;
  change: (value: Value) => void;
  /** It was typed before the page was loaded. */
  isRestored: boolean;
  /** Forget what was typed: it was sent, or is given up. */
  forget: () => void;
}

const PREFIX = "typed ";

function stored<Value>(name: string): Value | null {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? "null") as Value | null;
  } catch {
    return null;
  }
}

/** The value of a form by its name; signing out clears the tab's store, and with it what was typed. */
export function useTyping<Value>(name: string, initial: Value): Typing<Value> {
  const [before] = useState(() => stored<Value>(name));
  const [value, setValue] = useState<Value>(before ?? initial);
  const [isRestored, setRestored] = useState(before !== null);
  const forget = () => {
    sessionStorage.removeItem(PREFIX + name);
    setRestored(false);
  };
  const change = (next: Value) => {
    setValue(next);
    try {
      sessionStorage.setItem(PREFIX + name, JSON.stringify(next));
    } catch {
      // The tab's store is full or closed: the form works as before, without its memory.
    }
  };
  return { value, change, isRestored, forget };
}
