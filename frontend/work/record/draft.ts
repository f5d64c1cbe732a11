// What is typed and not yet saved, kept in this tab: it outlives a reload and a session that ended, not the window.
import { useEffect, useState } from "preact/hooks";

export type Texts = Record<string, string>;

/** The changed fields as text, whether they came from an earlier visit, and how to change or drop them. */
export function useDraft(key: string) {
  const at = `draft:${key}`;
  const [texts, setTexts] = useState<Texts>(() => JSON.parse(sessionStorage.getItem(at) ?? "{}") as Texts);
  const [isFound] = useState(Object.keys(texts).length > 0);
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
