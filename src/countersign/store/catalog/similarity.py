"""GET /products/{id}/related: products with the same tags and of the same kind."""

import msgspec

from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.products import ProductNotFound, visible_entry
from countersign.store.catalog.schemas import Product, ProductDetail
from countersign.store.catalog.search import SqlBuilder

MAX_RELATED, MAX_TAGS = 8, 5
MAX_READ = 100
"""The maximum number of products of each tag that are read in each direction from the product's title."""
WEIGHT_OF_TAG, WEIGHT_OF_KIND = 4, 1
NEIGHBOURS = """
    SELECT product_id, {weight} AS weight
    FROM (
        SELECT product_id
        FROM catalog_facet
        WHERE facet = {facet} AND (title, product_id) {sign} ({title}, {id})
        ORDER BY title {order}, product_id {order}
        LIMIT {limit}
    ) AS t{number}
"""
MOST_ALIKE = """
    SELECT c.card
    FROM (SELECT product_id, sum(weight) AS score FROM ({neighbours}) AS found GROUP BY product_id) AS alike
    JOIN catalog_entry c ON c.product_id = alike.product_id
    WHERE c.status = 'public'
    ORDER BY alike.score DESC, c.title, c.product_id
    LIMIT {limit}
"""


class RelatedProducts(msgspec.Struct):
    """At most eight products, those with the most tags in common first."""

    items: list[Product]


_detail = msgspec.json.Decoder(ProductDetail)


async def list_related(call: StoreRequest[Nothing, Nothing]) -> Response:
    """List products that are like this one: with the same tags, or of the same kind."""
    database = call.context.database
    product = await visible_entry(database, call.caller, call.path["id"])
    detail = _detail.decode(product.detail)
    facets = [(f"tag:{tag}", WEIGHT_OF_TAG) for tag in detail.tags[:MAX_TAGS]]
    statement = SqlBuilder()
    title, product_id = statement.add(detail.title), statement.add(detail.id)
    neighbours = [
        NEIGHBOURS.format(
            weight=weight,
            facet=statement.add(facet),
            sign=sign,
            order=order,
            title=title,
            id=product_id,
            limit=MAX_READ,
            number=f"{number}{order}",
        )
        for number, (facet, weight) in enumerate([*facets, (f"kind:{detail.kind}", WEIGHT_OF_KIND)])
        for sign, order in ((">", "ASC"), ("<", "DESC"))
    ]
    text = MOST_ALIKE.format(neighbours=" UNION ALL ".join(neighbours), limit=MAX_RELATED)
    rows = await database.scan(text, *statement.values)
    return Response(200, b'{"items":[%b]}' % b",".join([row[0] for row in rows]))


ROUTES = (
    route(
        "GET",
        "/products/{id}/related",
        list_related,
        answers={200: RelatedProducts},
        refusals=(ProductNotFound,),
        cached=True,
        cross_origin=True,
    ),
)
