// Other products with the same kind and tag.
import { useRequest } from "../../shared/request";
import { translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Shelf } from "../shelf";

const t = translator("store");

const MOST = 8;

export function MoreLikeThis({ product }: { product: Schemas["ProductDetail"] }) {
  const { kind, tags } = product;
  const tag = tags[0];
  const productsRequest = useRequest(
    async (signal) => {
      const like = async (about: object) =>
        (await api.get("/api/v1/products", { query: { kind, sort: "-downloads_7d", limit: MOST, ...about }, signal })).value.items;
      const near = tag ? await like({ tag }) : [];
      const others = near.length < MOST ? await like({}) : [];
      const all = [...near, ...others].filter((candidate) => candidate.id !== product.id);
      return all.filter((candidate, place) => all.findIndex(({ id }) => id === candidate.id) === place).slice(0, MOST);
    },
    [product.id],
  );
  if (productsRequest.state !== "loaded") {
    return null;
  }
  return <Shelf title={t("more.like")} allAddress={tag ? `/browse?kind=${kind}&tag=${encodeURIComponent(tag)}` : `/browse?kind=${kind}`} products={productsRequest.value} />;
}
