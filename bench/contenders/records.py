"""The records service as `countersign serve records` runs it, and its floor: SQL by hand, without rights, masks or
audit."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contenders.wanted import Wanted
from countersign.cli.server import records_service
from countersign.kernel import ids
from countersign.kernel.database.joint_statements import Write, run_writes
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.http.server import ASGIApp
from countersign.records import app
from countersign.records.audit.chain import Chain
from countersign.settings import Settings

MASTER_KEY = "YmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtYmU="
COLUMNS = (
    "id, revision, title, stage, expected_revenue_minor, contact_name, contact_email, contact_phone, party, owner, "
    "source, expected_close, lost_reason, notes"
)
GET = f"SELECT {COLUMNS} FROM lead WHERE id = $1"
# The + keeps SQLite from walking all leads of a stage and sorting them; ours finds by itself when to say so.
STAGE = {"sqlite": "+stage", "postgres": "stage"}
LIST = f"SELECT {COLUMNS} FROM lead WHERE {{stage}} = $1 ORDER BY expected_close NULLS LAST, id LIMIT $2"
COUNT = "SELECT count(*) FROM lead WHERE stage = $1"
UPDATE = f"""
UPDATE lead SET title = $2, title__folded = $2, revision = revision + 1 WHERE id = $1 RETURNING {COLUMNS}
"""
INSERT = """
INSERT INTO lead (id, revision, changed, title, title__folded, stage, contact_email,
    contact_email__folded)
VALUES ($1, 1, 0, $2, $2, 'new', $3, $3)
"""

Answering = Callable[[Database, dict[str, Any]], Awaitable[object]]
_encode = msgspec.json.Encoder().encode
_names = [column.strip() for column in COLUMNS.split(",")]


def settings(data: str, database_url: str) -> Settings:
    """Return the settings of a service on a seeded database."""
    url = database_url if database_url.startswith("postgresql:") else ""
    return Settings(data=data, database_url=url, database_pool=10, master_key=MASTER_KEY)


@asynccontextmanager
async def opened(config: Wanted) -> AsyncGenerator[ASGIApp]:
    """Provide the service, or its floor on the same database through the same port."""
    if config.contender == "records-floor":
        database = await open_database(config.database_url, schema=app.SCHEMA)
        yield Starlette(routes=_routes(database))
        await database.close()
        return
    if config.contender == "records-unaudited":
        Chain.append = _only_writes  # type: ignore[method-assign]
    async with (
        app.open_records(settings(config.data, config.database_url), "http://bench", is_loopback=True) as service,
        records_service.application(service, tends=False) as application,
    ):
        yield application


async def _only_writes(chain: Chain, transaction: Transaction, _entry: object, writes: Sequence[Write] = ()) -> None:
    """Write the record, and append nothing to the audit."""
    await run_writes(transaction, chain.dialect, writes)


def _record(row: Any) -> dict[str, Any]:
    return dict(zip(_names, row, strict=True))


def _routes(database: Database) -> list[Route]:
    async def get(body: dict[str, Any]) -> object:
        return _record(await database.fetch_one(GET, body["id"]))

    async def page(body: dict[str, Any]) -> object:
        text = LIST.format(stage=STAGE[database.dialect])
        rows = await database.scan(text, body["filter"][0]["value"], body["limit"])
        return [_record(row) for row in rows]

    async def search(body: dict[str, Any]) -> object:
        (total,) = await database.scan(COUNT, body["filter"][0]["value"])
        return {"rows": await page(body), "total": total[0]}

    async def create(body: dict[str, Any]) -> object:
        record_id = ids.new_record_id()
        async with database.transaction() as transaction:
            await transaction.run(INSERT, record_id, body["title"], body["contact_email"])
        return {"id": record_id}

    async def update(body: dict[str, Any]) -> object:
        async with database.transaction() as transaction:
            return _record(await transaction.fetch_one(UPDATE, body["id"], body["title"]))

    def route(name: str, answer: Callable[[dict[str, Any]], Awaitable[object]]) -> Route:
        async def endpoint(request: Request) -> Response:
            value = await answer(msgspec.json.decode(await request.body()))
            return Response(_encode({"denied": [], "value": value}), media_type="application/json")

        return Route(f"/api/lead/{name}", endpoint, methods=["POST"])

    answers = {"get": get, "list": page, "search": search, "create": create, "update": update}
    return [route(name, answer) for name, answer in answers.items()]
