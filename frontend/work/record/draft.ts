// Unsaved input of forms, stored in this tab. It survives a reload and the end of the session, but not closing the tab.
import { useEffect, useState } from "preact/hooks";

export type Texts = Record<string, string>;

/** Save a draft for a form that is opened next. */
export function keepDraft(key: string, texts: Texts): void {
  sessionStorage.setItem(`draft:${key}`, JSON.stringify(texts));
}

/** The changed fields as text, whether they are from an earlier visit, and functions to change or discard them. */
export function useDraft(key: string, begun: Texts = {}) {
  const at = `draft:${key}`;
  const [texts, setTexts] = useState<Texts>(() => ({ ...(JSON.parse(sessionStorage.getItem(at) ?? "{}") as Texts), ...begun }));
  const [isFound] = useState(sessionStorage.getItem(at) !== null);
  useEffect(() => {
    if (Object.keys(texts).length) {
      sessionStorage.setItem(at, JSON.stringify(texts));
    } else {
      sessionStorage.removeItem(at);
    }
  }, [texts]);
  return {
    texts,
    isFound,
    set: (name: string, text: string) => setTexts((last) => ({ ...last, [name]: text })),
    unset: (name: string) => setTexts(({ [name]: _, ...rest }) => rest),
    drop: () => {
      sessionStorage.removeItem(at);
      setTexts({});
    },
  };
}
