"""Fills a store's database through the store's own functions, before or beside the processes that serve it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.auth import organisations, people, tokens
from countersign.store.auth.oauth import clients
from countersign.store.context import Store
from countersign.store.redeem import codes
from countersign.store.releases import lifecycle
from countersign.store.releases.schemas import ProductWrite
from tests.faults.lives import RestartableService
from tests.servers.countersign import MASTER_KEY

ORG = "north"
ALL_SCOPES = "read:products write:products read:releases write:releases read:library admin:org"


@asynccontextmanager
async def open_served_store(lives: RestartableService, database_url: str = "") -> AsyncIterator[Store]:
    """Open, in this process, the store that the server process serves."""
    url = database_url if database_url.startswith("postgres") else ""
    settings = Settings(data=str(lives.data), database_url=url, database_pool=3, master_key=MASTER_KEY, reserve_mib=0)
    if url:
        lives.settings["COUNTERSIGN_DATABASE_URL"] = url
    async with distribution.open_store(settings, lives.root_url, is_loopback=True) as store:
        yield store


async def organisation(store: Store) -> str:
    """Create the organisation, and return its id."""
    async with store.database.transaction() as transaction:
        return (await organisations.create_organisation(transaction, ORG, ORG.title())).id


async def persons(store: Store, count: int) -> dict[str, str]:
    """Create customers, and return the owner id and a bearer token of each."""
    tokens_by_owner: dict[str, str] = {}
    async with store.database.transaction() as transaction:
        for number in range(count):
            person = await people.add_person(transaction, f"person-{number}@example.com", None)
            held_scopes = frozenset({"read:library", "read:products"})
            tokens_by_owner[f"person:{person.id}"] = tokens.issue(store, person.id, tokens.FIRST_PARTY, held_scopes)
    return tokens_by_owner


async def publisher(store: Store, org_id: str) -> str:
    """Return a bearer token of a new OAuth client of the organisation."""
    async with store.database.transaction() as transaction:
        client, _ = await clients.create_client(transaction, org_id, "a client", ALL_SCOPES.split())
    return tokens.issue(store, client.id, client.id, client.scopes)


async def product(store: Store, org_id: str, slug: str) -> str:
    """Create a public product, and return its id."""
    body = ProductWrite(slug=slug, title=slug.title(), kind="game", platforms=["linux"])
    body.status = "public"
    async with store.database.transaction() as transaction:
        return await lifecycle.create(transaction, org_id, body)


async def promo(store: Store, org_id: str, product_id: str, text: str, uses: int) -> None:
    """Create a valid code with this text for the product."""
    async with store.database.transaction() as transaction:
        await codes.add_batch(transaction, org_id, "promo", [product_id], [text], uses)


async def code_state(store: Store, text: str, product_id: str) -> tuple[int, Sequence[str], Sequence[str]]:
    """Return the code's uses, the owners who redeemed it, and the owners entitled to the product."""
    reader = store.database
    uses_row = await reader.fetch_one("SELECT uses FROM code WHERE code_hash = $1", codes.digest(text))
    redeemed = await reader.fetch("SELECT owner FROM redemption WHERE code_hash = $1", codes.digest(text))
    entitled = await reader.fetch(
        "SELECT owner FROM entitlement WHERE product_id = $1 AND revoked_at IS NULL", product_id
    )
    assert uses_row is not None
    return uses_row[0], [row[0] for row in redeemed], [row[0] for row in entitled]
