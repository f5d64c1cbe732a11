// Stores the input of a form in the tab until it is sent, so that it survives a reload, the end of the session or a lost network.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

interface StoredInput<Value> {
  value: Value;
  change: (value: Value) => void;
  /** Whether the input was restored after a reload. */
  isRestored: boolean;
  /** Delete the stored input after it was sent or discarded. */
  forget: () => void;
}

const PREFIX = "typed ";

function readStored<Value>(name: string): Value | null {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? "null") as Value | null;
  } catch {
    return null;
  }
}

const clearedCount = signal(0);

/** Delete all stored input of this tab, and empty the forms that show it. */
export function clearStoredInput(): void {
  sessionStorage.clear();
  clearedCount.value++;
}

/** The stored value of the form with this name. Signing out clears the storage. */
export function useStoredInput<Value>(name: string, initial: Value): StoredInput<Value> {
  const [storedBefore] = useState(() => readStored<Value>(name));
  const [value, setValue] = useState<Value>(storedBefore ?? initial);
  const [isRestored, setRestored] = useState(storedBefore !== null);
  const [clearedBefore] = useState(clearedCount.peek());
  useEffect(() => {
    if (clearedCount.value !== clearedBefore) {
      setValue(initial);
      setRestored(false);
    }
  }, [clearedCount.value]);
  const forget = () => {
    sessionStorage.removeItem(PREFIX + name);
    setRestored(false);
  };
  const change = (newValue: Value) => {
    setValue(newValue);
    try {
      sessionStorage.setItem(PREFIX + name, JSON.stringify(newValue));
    } catch {
      // The storage is full or disabled: the form works without it.
    }
  };
  return { value, change, isRestored, forget };
}
