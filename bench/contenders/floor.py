"""The floor: Starlette routes, SQL by hand on the drivers, msgspec structs encoded for each request, nothing else.

No caller, limit, tag, signature or log. It answers the same documents as the product; pages go on by plain keys.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import apsw
import asyncpg
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contenders.wanted import Wanted
from countersign.kernel import clock
from countersign.kernel.database.open import open_database
from countersign.kernel.http.server import ASGIApp
from countersign.store.redeem import codes

PAGE = """
    SELECT id, slug, title, description, kind, platforms
    FROM product
    WHERE status = 'public' AND (title, id) > ($1, $2)
    ORDER BY title, id
    LIMIT $3
"""
DETAIL = """
    SELECT p.id, p.slug, p.title, p.description, p.kind, p.platforms, p.tags, p.homepage, p.license,
           p.access, p.status, p.created_at, p.updated_at, o.slug, r.channel, r.version, r.published_at
    FROM product p
    JOIN organisation o ON o.id = p.org_id
    LEFT JOIN release r ON r.product_id = p.id AND r.status = 'published'
    WHERE p.slug = $1
"""
LIBRARY = """
    SELECT p.id, p.slug, p.title, p.description, p.kind, p.platforms
    FROM entitlement e
    JOIN product p ON p.id = e.product_id
    WHERE e.owner = $1 AND e.revoked_at IS NULL
    ORDER BY e.granted_at DESC, e.product_id DESC
    LIMIT $2
"""
INSERT = "INSERT INTO redemption (code_hash, owner, redeemed_at) VALUES ($1, $2, $3)"

Row: TypeAlias = Sequence[Any]
Fetch: TypeAlias = Callable[..., Awaitable[list[Row]]]
Insert: TypeAlias = Callable[[bytes, str, int], Awaitable[None]]

_encode = msgspec.json.Encoder().encode


class Card(msgspec.Struct):
    """A product in a list; `platforms` are JSON already."""

    id: str
    slug: str
    title: str
    description: str
    kind: str
    platforms: msgspec.Raw


class Page(msgspec.Struct):
    """A page and where the next begins."""

    items: list[Card]
    next: list[str] | None


class Channel(msgspec.Struct):
    """The newest release of a channel."""

    channel: str
    version: str
    published_at: str


class Detail(Card, kw_only=True):
    """A product's own page."""

    org: str
    access: str
    status: str
    channels: list[Channel]
    media: list[str]
    tags: msgspec.Raw
    homepage: str
    license: str
    created_at: str
    updated_at: str


class Code(msgspec.Struct):
    """A code to redeem."""

    code: str


def _card(row: Row) -> Card:
    return Card(row[0], row[1], row[2], row[3], row[4], msgspec.Raw(row[5].encode()))


def _answer(value: object) -> Response:
    return Response(_encode(value), media_type="application/json")


def _routes(fetch: Fetch, insert: Insert) -> list[Route]:
    async def page(request: Request) -> Response:
        parameters = request.query_params
        limit = int(parameters["limit"])
        rows = await fetch(PAGE, parameters.get("title", ""), parameters.get("id", ""), limit + 1)
        next_cursor = [rows[limit - 1][2], rows[limit - 1][0]] if len(rows) > limit else None
        return _answer(Page([_card(row) for row in rows[:limit]], next_cursor))

    async def detail(request: Request) -> Response:
        rows = await fetch(DETAIL, request.path_params["slug"])
        row = rows[0]
        return _answer(
            Detail(
                id=row[0], slug=row[1], title=row[2], description=row[3], kind=row[4],
                platforms=msgspec.Raw(row[5].encode()), tags=msgspec.Raw(row[6].encode()), homepage=row[7],
                license=row[8], access=row[9], status=row[10], created_at=clock.rfc3339(row[11]),
                updated_at=clock.rfc3339(row[12]), org=row[13], media=[],
                channels=[Channel(row[14], row[15], clock.rfc3339(row[16])) for row in rows if row[14]],
            )
        )  # fmt: skip

    async def library(request: Request) -> Response:
        rows = await fetch(LIBRARY, request.query_params["owner"], 51)
        return _answer([_card(row) for row in rows[:50]])

    async def redeem(request: Request) -> Response:
        code = msgspec.json.decode(await request.body(), type=Code)
        await insert(codes.digest(code.code), "person", time.time_ns() // 1000)
        return _answer({"success": True, "product_id": code.code, "products": [code.code], "already_owned": False})

    return [
        Route("/products", page),
        Route("/products/{slug}", detail),
        Route("/library", library),
        Route("/redeem", redeem, methods=["POST"]),
    ]


@asynccontextmanager
async def opened(config: Wanted) -> AsyncGenerator[ASGIApp]:
    """Provide the application on the seeded database. Each insert is one durable transaction."""
    if config.contender == "floor-group":
        async with _sharing_commits(config) as application:
            yield application
    elif config.is_sqlite:
        yield Starlette(routes=_routes(*_sqlite(config.path)))
    else:
        pool = await asyncpg.create_pool(
            config.database_url, min_size=10, max_size=10, reset=_nothing,
            max_inactive_connection_lifetime=0, server_settings={"search_path": "distribution", "jit": "off"},
        )  # fmt: skip
        async with pool:

            async def insert(*values: object) -> None:
                await pool.execute(INSERT, *values)

            yield Starlette(routes=_routes(pool.fetch, insert))


async def _nothing(_connection: object) -> None:
    """Instead of the pool's reset query."""


def _sqlite(path: str) -> tuple[Fetch, Insert]:
    connection = apsw.Connection(path)
    pragmas = ("journal_mode = WAL", "synchronous = FULL", "cache_size = -8192", "mmap_size = 268435456")
    for pragma in (*pragmas, "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    numbered = {text: text.replace("$", "?") for text in (PAGE, DETAIL, LIBRARY, INSERT)}

    async def fetch(statement: str, *values: str | int) -> list[Row]:
        return connection.execute(numbered[statement], values).fetchall()

    async def insert(*values: bytes | str | int) -> None:
        # Outside of BEGIN each statement is a transaction, and on the disk when it returns.
        connection.execute(numbered[INSERT], values)

    return fetch, insert


@asynccontextmanager
async def _sharing_commits(config: Wanted) -> AsyncGenerator[ASGIApp]:
    """Run the floor with the product's own database port, whose concurrent inserts share commits."""
    database = await open_database(config.database_url, schema="distribution")

    async def insert(*values: bytes | str | int) -> None:
        async with database.transaction() as transaction:
            await transaction.run(INSERT, *values)

    yield Starlette(routes=_routes(database.fetch, insert))
    await database.close()
