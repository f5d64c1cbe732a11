// One product as it is now, with what names this state of it.
import { send } from "../../shared/client";
import type { Schemas } from "../api";

export interface Known {
  product: Schemas["ProductDetail"];
  /** Names this state of it: whoever changes another one is told so. */
  etag: string;
}

export async function known(slug: string, signal?: AbortSignal): Promise<Known> {
  const answer = await send("GET", `/api/v1/products/${encodeURIComponent(slug)}`, signal ? { signal } : {});
  return { product: (await answer.json()) as Known["product"], etag: answer.headers.get("etag") ?? "" };
}
