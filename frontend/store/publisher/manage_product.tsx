// The publisher's page of one product: its releases, data and media.
import { useRequest } from "../../shared/request";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult } from "../../shared/components/states";
import { Tabs } from "../../shared/components/tabs";
import { setQuery, query } from "../../shared/router";
import { EditProduct } from "./edit_product";
import { fetchProductState, type ProductState } from "./product_state";
import { EditMedia } from "./edit_media";
import { ProductArea, ProductPath } from "./publisher_area";
import { Status } from "./products";
import { RequirePublisher } from "./require_publisher";
import { Releases } from "./releases";
import { translator } from "../../shared/i18n";

const tStore = translator("store");
const t = translator("publisher");

export function ManageProduct({ slug }: { slug: string }) {
  const request = useRequest((signal) => fetchProductState(slug, signal), [slug], { keepsPrevious: true });
  if (request.state === "failed" && request.problem.status === 404) {
    return <NotFound />;
  }
  const title = request.state === "loaded" ? request.value.product.title : slug;
  const page = (
    <>
      <ProductPath current={title} />
      <Heading title={title}>
        {request.state === "loaded" && (
          <span class="row">
            <Status status={request.value.product.status} />
            <a href={`/products/${slug}`}>{t("as.seen")}</a>
          </span>
        )}
      </Heading>
      <RequirePublisher org={request.state === "loaded" ? request.value.product.org : undefined}>
        <RequestResult request={request}>{(value) => <ProductTabs {...value} reload={request.reload} />}</RequestResult>
      </RequirePublisher>
    </>
  );
  const org = request.state === "loaded" ? request.value.product.org : undefined;
  return <ProductArea org={org}>{page}</ProductArea>;
}

function ProductTabs({ product, etag, reload }: ProductState & { reload: () => void }) {
  return (
    <Tabs
      label={product.title}
      chosen={query.value.get("tab") ?? "releases"}
      onChoose={(tab) => setQuery({ tab })}
      tabs={[
        { name: "releases", label: tStore("releases"), content: () => <Releases product={product} /> },
        { name: "details", label: t("details"), content: () => <EditProduct key={product.id} product={product} etag={etag} reload={reload} /> },
        { name: "media", label: tStore("media"), content: () => <EditMedia product={product} reload={reload} /> },
      ]}
    />
  );
}
