"""The records service over a table of an existing database, and its floor: the same SQL by hand, without rights, masks
and ids. On PostgreSQL the floor uses the driver without a transaction for each read, and on SQLite our port."""

import csv
import io
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contenders.records import MASTER_KEY
from contenders.wanted import Wanted
from countersign.cli.server import records_service
from countersign.kernel.database.open import open_existing
from countersign.kernel.http.server import ASGIApp
from countersign.kernel.security.encryption import MemoryCipher
from countersign.records import app
from countersign.settings import Settings

COLUMNS = "id, name, email, phone, status, region_id, visits, joined, amount"
GET = f"SELECT {COLUMNS} FROM customer WHERE id = $1"
LIST = f"SELECT {COLUMNS} FROM customer WHERE visits = $1 ORDER BY id LIMIT $2"
COUNT = "SELECT count(*) FROM customer WHERE visits = $1"
COUNT_BY = "SELECT status, count(*) FROM customer GROUP BY status ORDER BY status"
EXPORT = f"SELECT {COLUMNS} FROM customer ORDER BY id"
_encode = msgspec.json.Encoder(enc_hook=str).encode
_names = [word.strip() for word in COLUMNS.split(",")]


def settings(config: Wanted) -> Settings:
    """Return the settings of a service over the existing database."""
    return Settings(
        data=config.data,
        modules=config.modules,
        existing_url=config.database_url,
        database_url=config.database_url if config.contender == "connected-writing" else "",
        master_key=MASTER_KEY,
        accept_wide_rights=True,
    )


@asynccontextmanager
async def opened(config: Wanted) -> AsyncGenerator[ASGIApp]:
    """Open the service, or its floor on the same database through the same port."""
    if config.contender == "connected-floor" and config.is_sqlite:
        database = await open_existing(config.database_url, pool=4, read_deadline_s=60, new_cipher=MemoryCipher)
        yield Starlette(routes=_routes(database.scan))
        await database.close()
        return
    if config.contender == "connected-floor":
        async with asyncpg.create_pool(config.database_url, min_size=4, max_size=4) as pool:
            yield Starlette(routes=_routes(pool.fetch))
        return
    async with (
        app.open_records(settings(config), "http://bench", is_loopback=True) as service,
        records_service.application(service, tends=False) as application,
    ):
        yield application


def _routes(fetch: Callable[..., Awaitable[Any]]) -> list[Route]:
    async def get(body: dict[str, Any]) -> object:
        return _records(await fetch(GET, body["id"]))[0]

    async def page(body: dict[str, Any]) -> object:
        return _records(await fetch(LIST, body["filter"][0]["value"], body["limit"]))

    async def search(body: dict[str, Any]) -> object:
        (total,) = await fetch(COUNT, body["filter"][0]["value"])
        return {"rows": await page(body), "total": total[0]}

    async def count_by(_: dict[str, Any]) -> object:
        return [{"value": value, "count": count} for value, count in await fetch(COUNT_BY)]

    def route(name: str, answer: Callable[[dict[str, Any]], Awaitable[object]]) -> Route:
        async def endpoint(request: Request) -> Response:
            value = await answer(msgspec.json.decode(await request.body()))
            return Response(_encode({"denied": [], "value": value}), media_type="application/json")

        return Route(f"/api/customer/{name}", endpoint, methods=["POST"])

    async def export(_: Request) -> Response:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(_names)
        writer.writerows(await fetch(EXPORT))
        return Response(text.getvalue(), media_type="text/csv")

    answers = {"get": get, "list": page, "search": search, "count_by": count_by}
    routes = [route(name, answer) for name, answer in answers.items()]
    return [*routes, Route("/api/customer/export", export, methods=["POST"])]


def _records(rows: Any) -> list[dict[str, Any]]:
    return [dict(zip(_names, row, strict=True)) for row in rows]
