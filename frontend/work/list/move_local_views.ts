// Moves the views that earlier versions kept in this browser to the service.
import type { Meta } from "../api";

/** Save each view with `create` and remove it from the browser. A view that cannot be saved stays for the next time. */
export async function moveLocalViews(meta: Meta, model: string, create: (name: string, search: string) => Promise<void>): Promise<void> {
  const key = `views:${meta.caller.name}:${model}`;
  const readViews = (): Record<string, string> => {
    try {
      return JSON.parse(localStorage.getItem(key) ?? "{}") as Record<string, string>;
    } catch {
      return {};
    }
  };
  const store = (localViews: Record<string, string>) => {
    if (Object.keys(localViews).length === 0) {
      localStorage.removeItem(key);
    } else {
      localStorage.setItem(key, JSON.stringify(localViews));
    }
  };
  for (const [name, search] of Object.entries(readViews())) {
    const { [name]: _, ...otherViews } = readViews();
    // Remove it first, so that another tab does not save it as well.
    store(otherViews);
    try {
      await create(name, search);
    } catch {
      store({ ...readViews(), [name]: search });
    }
  }
}
