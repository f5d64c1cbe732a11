// A product with its ETag, for conditional changes.
import { send } from "../../shared/client";
import type { Schemas } from "../api";

export interface ProductState {
  product: Schemas["ProductDetail"];
  /** Sent as If-Match, so that a change of a newer version is refused. */
  etag: string;
}

export async function fetchProductState(slug: string, signal?: AbortSignal): Promise<ProductState> {
  const answer = await send("GET", `/api/v1/products/${encodeURIComponent(slug)}`, signal ? { signal } : {});
  return { product: (await answer.json()) as ProductState["product"], etag: answer.headers.get("etag") ?? "" };
}
