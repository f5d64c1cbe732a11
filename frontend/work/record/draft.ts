// Unsaved input of forms, stored in this tab. It survives a reload and the end of the session, but not closing the tab.
import { useEffect, useState } from "preact/hooks";

export type Texts = Record<string, string>;

/** Save a draft for a form that is opened next. */
export function storeDraft(key: string, texts: Texts): void {
  sessionStorage.setItem(`draft:${key}`, JSON.stringify(texts));
}

/** The changed fields as text, whether they are from an earlier visit, and functions to change or discard them. */
export function useDraft(key: string, initialTexts: Texts = {}) {
  const storageKey = `draft:${key}`;
  const [texts, setTexts] = useState<Texts>(() => ({ ...(JSON.parse(sessionStorage.getItem(storageKey) ?? "{}") as Texts), ...initialTexts }));
  const [isRestored] = useState(sessionStorage.getItem(storageKey) !== null);
  useEffect(() => {
    if (Object.keys(texts).length) {
      sessionStorage.setItem(storageKey, JSON.stringify(texts));
    } else {
      sessionStorage.removeItem(storageKey);
    }
  }, [texts]);
  return {
    texts,
    isRestored,
    set: (name: string, text: string) => setTexts((lastTexts) => ({ ...lastTexts, [name]: text })),
    unset: (name: string) => setTexts(({ [name]: _, ...otherTexts }) => otherTexts),
    drop: () => {
      sessionStorage.removeItem(storageKey);
      setTexts({});
    },
  };
}
