// The products a person follows in this browser, what is newest of each, and whether it is newer than their last look.
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Heading } from "../../shared/components/heading";
import { RequestResult, Empty, Loading } from "../../shared/components/states";
import { relativePast, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Card } from "../card";
import { me } from "../me";
import { feedUrl } from "../product/follow";
import { updateNotes, productNotes } from "../product_notes";
import "../store.css";

const tLibrary = translator("library");
const t = translator("store");

type Detail = Schemas["ProductDetail"];

const AT_ONCE = 50;

export function Following() {
  return (
    <>
      <Heading title={t("following")} />
      {me.value === undefined ? <Loading /> : <Followed />}
    </>
  );
}

function Followed() {
  const ids = Object.keys(productNotes.value).filter((each) => productNotes.value[each]?.followed);
  const found = useRequest((signal) => read(ids, signal), [ids.join()], { keepsPrevious: true });
  if (!ids.length) {
    return (
      <Empty title={tLibrary("following.none")}>
        <p>{tLibrary("following.none.text")}</p>
      </Empty>
    );
  }
  return (
    <>
      <p class="quiet">{tLibrary("following.text")}</p>
      <RequestResult of={found}>
        {(products) => (
          <ul class="cards">
            {products.map((each) => (
              <One key={each.id} product={each} />
            ))}
          </ul>
        )}
      </RequestResult>
    </>
  );
}

function One({ product }: { product: Detail }) {
  const since = productNotes.value[product.id]?.followed;
  if (!since) {
    return null;
  }
  return (
    <Card level={2} product={product}>
      <ul class="facts-list">
        {product.channels.map((each) => (
          <li key={each.channel}>
            {each.version} <span class="small quiet">{each.channel}, {relativePast(each.published_at)}</span>{" "}
            {each.published_at > since && <Chip tone="good">{tLibrary("following.new")}</Chip>}
          </li>
        ))}
      </ul>
      <span class="row">
        <Button tight onClick={() => updateNotes(product.id, { followed: "" })}>
          {tLibrary("following.end")} <span class="hidden-text">{product.title}</span>
        </Button>
        <a href={feedUrl(product)} type="application/atom+xml">
          {tLibrary("feed")} <span class="hidden-text">{product.title}</span>
        </a>
      </span>
    </Card>
  );
}

/** All of them, a batch at a time; what is no longer there is left out. */
async function read(ids: readonly string[], signal: AbortSignal): Promise<Detail[]> {
  const found: Detail[] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const operations = ids
      .slice(at, at + AT_ONCE)
      .map((each) => ({ method: "GET" as const, path: `/products/${each}`, body: null, headers: null }));
    const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, signal })).value;
    found.push(...results.filter((each) => each.status === 200).map((each) => each.body as unknown as Detail));
  }
  return found;
}
