// Other products with the same kind and tag.
import { useRequest } from "../../shared/request";
import { translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Shelf } from "../shelf";

const t = translator("store");

const MAX_PRODUCTS = 8;

export function MoreLikeThis({ product }: { product: Schemas["ProductDetail"] }) {
  const { kind, tags } = product;
  const tag = tags[0];
  const productsRequest = useRequest(
    async (signal) => {
      const search = async (filter: object) =>
        (await api.get("/api/v1/products", { query: { kind, sort: "-downloads_7d", limit: MAX_PRODUCTS, ...filter }, signal })).value.items;
      const sameTag = tag ? await search({ tag }) : [];
      const sameKind = sameTag.length < MAX_PRODUCTS ? await search({}) : [];
      const all = [...sameTag, ...sameKind].filter((candidate) => candidate.id !== product.id);
      return all.filter((candidate, place) => all.findIndex(({ id }) => id === candidate.id) === place).slice(0, MAX_PRODUCTS);
    },
    [product.id],
  );
  if (productsRequest.state !== "loaded") {
    return null;
  }
  return <Shelf title={t("more.like")} allAddress={tag ? `/browse?kind=${kind}&tag=${encodeURIComponent(tag)}` : `/browse?kind=${kind}`} products={productsRequest.value} />;
}
