// What is typed and not yet saved, kept in this tab: it outlives a reload and a session that ended, not the window.
import { useEffect, useState } from "preact/hooks";

export type Texts = Record<string, string>;

/** Lay a draft ready for the form that is going to be opened. */
export function keepDraft(key: string, texts: Texts): void {
  sessionStorage.setItem(`draft:${key}`, JSON.stringify(texts));
}

/** The changed fields as text, whether they came from an earlier visit, and how to change or drop them. */
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
