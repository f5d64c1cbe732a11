"""/me/collections: named lists of products of the caller's library."""

from typing import Annotated

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http import response
from countersign.kernel.http.response import Response, Uuid
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.products import ProductNotFound
from countersign.store.library import owned_product
from countersign.store.personal.follows import PRIVATE, READ_LIBRARY, LimitReached

MAX_COLLECTIONS, MAX_ITEMS = 100, 10_000
LIST = """
    SELECT c.id, c.name, count(i.product_id)
    FROM product_collection c
    LEFT JOIN product_collection_item i ON i.collection_id = c.id
    WHERE c.owner = $1
    GROUP BY c.id, c.name
    ORDER BY c.name, c.id
"""
ONE = """
    SELECT c.id, c.name, (SELECT count(*) FROM product_collection_item i WHERE i.collection_id = c.id)
    FROM product_collection c
    WHERE c.owner = $1 AND c.id = $2
"""
HOW_MANY = "SELECT count(*) FROM product_collection WHERE owner = $1"
INSERT = "INSERT INTO product_collection (id, owner, name, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
IS_TAKEN = "SELECT 1 FROM product_collection WHERE owner = $1 AND name = $2 AND id <> $3"
RENAME = "UPDATE product_collection SET name = $3 WHERE owner = $1 AND id = $2"
EMPTY = "DELETE FROM product_collection_item WHERE collection_id = $1"
DELETE = "DELETE FROM product_collection WHERE owner = $1 AND id = $2"
ADD = """
    INSERT INTO product_collection_item (collection_id, product_id, added_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
"""
REMOVE = "DELETE FROM product_collection_item WHERE collection_id = $1 AND product_id = $2"


class CollectionNotFound(NotFound):
    """The caller has no collection with this id."""

    resolution = "List your collections with GET /api/v1/me/collections."


class CollectionExists(Refused):
    """The caller has a collection with this name."""

    status = 409
    code = "collection_exists"
    title = "Collection exists"
    resolution = "Use the existing collection, or choose another name."


class CollectionWrite(msgspec.Struct, forbid_unknown_fields=True):
    """The name of a collection."""

    name: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=100,
            # The name must not contain control characters or characters that change the direction of text.
            pattern=r"^(?=[\s\S]*\S)[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*(?!\n)$",
            extra={"needs": "must be 1 to 100 visible characters, and not blank"},
        ),
    ]


class Collection(msgspec.Struct):
    """A named list of products of the caller's library; `count` is their number."""

    id: Uuid
    name: str
    count: int


class CollectionList(msgspec.Struct):
    """All collections of the caller, by name."""

    items: list[Collection]


async def find_collection(reader: Reader, owner: str, collection_id: str) -> Collection:
    """The owner's collection with this id.

    Raises:
        CollectionNotFound: the owner has no collection with this id.
    """
    row = await reader.fetch_one(ONE, owner, collection_id.lower())
    if row is None:
        raise CollectionNotFound("you have no collection with this id")
    return Collection(row[0], row[1], int(row[2]))


async def list_collections(call: StoreRequest[Nothing, Nothing]) -> Response:
    """List the caller's collections, by name."""
    rows = await call.context.database.scan(LIST, call.caller.owner)
    collections = [Collection(collection_id, name, int(count)) for collection_id, name, count in rows]
    return response.json(CollectionList(collections), headers=PRIVATE)


async def create_collection(call: StoreRequest[Nothing, CollectionWrite]) -> Response:
    """Create a collection."""
    owner, name = call.caller.owner, call.body.name
    count = await call.transaction.fetch_one(HOW_MANY, owner)
    if count is not None and count[0] >= MAX_COLLECTIONS:
        raise LimitReached(f"you have {MAX_COLLECTIONS} collections already")
    collection = Collection(ids.new_uuid(), name, 0)
    if not await call.transaction.run(INSERT, collection.id, owner, name, clock.now()):
        raise CollectionExists("you have a collection with this name")
    return response.json(collection, 201, headers=PRIVATE)


async def rename_collection(call: StoreRequest[Nothing, CollectionWrite]) -> Response:
    """Rename a collection."""
    owner = call.caller.owner
    collection = await find_collection(call.transaction, owner, call.path["collection_id"])
    if await call.transaction.fetch_one(IS_TAKEN, owner, call.body.name, collection.id) is not None:
        raise CollectionExists("you have a collection with this name")
    await call.transaction.run(RENAME, owner, collection.id, call.body.name)
    return response.json(Collection(collection.id, call.body.name, collection.count), headers=PRIVATE)


async def delete_collection(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Delete a collection; its products stay in the library."""
    collection = await find_collection(call.transaction, call.caller.owner, call.path["collection_id"])
    await call.transaction.run(EMPTY, collection.id)
    await call.transaction.run(DELETE, call.caller.owner, collection.id)
    return response.no_content()


async def add_item(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Put a product of the library into a collection. Repeating it has no effect."""
    collection, product_id = await _collection_and_product(call.transaction, call)
    if collection.count >= MAX_ITEMS:
        raise LimitReached(f"the collection has {MAX_ITEMS} products already")
    await call.transaction.run(ADD, collection.id, product_id, clock.now())
    return response.no_content()


async def remove_item(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Remove a product from a collection. Repeating it has no effect."""
    collection, product_id = await _collection_and_product(call.transaction, call)
    await call.transaction.run(REMOVE, collection.id, product_id)
    return response.no_content()


async def _collection_and_product(
    transaction: Transaction, call: StoreRequest[Nothing, Nothing]
) -> tuple[Collection, str]:
    owner = call.caller.owner
    collection = await find_collection(transaction, owner, call.path["collection_id"])
    return collection, await owned_product(transaction, owner, call.path["id"])


_ITEM = "/me/collections/{collection_id}/items/{id}"
ROUTES = (
    route(
        "GET",
        "/me/collections",
        list_collections,
        answers={200: CollectionList},
        scope=READ_LIBRARY,
        sends={200: ("Cache-Control",)},
    ),
    route(
        "POST",
        "/me/collections",
        create_collection,
        body=CollectionWrite,
        answers={201: Collection},
        refusals=(CollectionExists, LimitReached),
        scope=READ_LIBRARY,
        writes=True,
        sends={201: ("Cache-Control",)},
    ),
    route(
        "PATCH",
        "/me/collections/{collection_id}",
        rename_collection,
        body=CollectionWrite,
        answers={200: Collection},
        refusals=(CollectionNotFound, CollectionExists),
        scope=READ_LIBRARY,
        writes=True,
        sends={200: ("Cache-Control",)},
    ),
    route(
        "DELETE",
        "/me/collections/{collection_id}",
        delete_collection,
        answers={204: None},
        refusals=(CollectionNotFound,),
        scope=READ_LIBRARY,
        writes=True,
    ),
    route(
        "PUT",
        _ITEM,
        add_item,
        answers={204: None},
        refusals=(CollectionNotFound, ProductNotFound, LimitReached),
        scope=READ_LIBRARY,
        writes=True,
    ),
    route(
        "DELETE",
        _ITEM,
        remove_item,
        answers={204: None},
        refusals=(CollectionNotFound, ProductNotFound),
        scope=READ_LIBRARY,
        writes=True,
    ),
)
