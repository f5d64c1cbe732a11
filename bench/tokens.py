"""Measures the CPU time that the store needs to check a cached token: its signature, its claims, and whether it was
revoked. The benchmark compares this time with the lookup of an opaque token, and with a check of the signature for each
request. Everything runs in this process, one check at a time."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import harness
import seed
from harness import Bench
from joserfc import jwt
from joserfc.jwk import ECKey

from countersign.kernel.http.request import Headers
from countersign.kernel.security import secrets
from countersign.settings import Settings
from countersign.store import app
from countersign.store.auth import organisations, tokens
from countersign.store.auth.authentication import Authenticator
from countersign.store.auth.oauth import clients
from countersign.store.context import Store

LIMIT_US = 30
TURNS = 2_000
ADDRESS = "192.0.2.1"
SESSION = "SELECT person_id, expires_at FROM session WHERE token_hash = $1 AND expires_at > $2"

Step = Callable[[], Awaitable[object]]


def measure(bench: Bench, database: str) -> None:
    """Measure one database."""
    figures = asyncio.run(_measured(bench, database))
    bench.other[database] = {name: round(cost, 2) for name, cost in figures.items()}
    for name, cost in figures.items():
        print(f"  {database:9} {name:58} {cost:8.2f} µs of CPU")
    bench.aim(f"{database}, 30 µs to a known token's signature and claims", LIMIT_US / figures["known: claims"], 1)


async def _measured(bench: Bench, database: str) -> dict[str, float]:
    url = ""
    if database == "postgres" and bench.cluster is not None:
        bench.cluster.sql("CREATE DATABASE tokens TEMPLATE template0")
        url = bench.cluster.url("tokens")
    data = bench.folder / f"tokens-{database}"
    settings = Settings(data=str(data), database_url=url, database_pool=2, master_key=seed.MASTER_KEY, reserve_mib=0)
    async with app.open_store(settings, "http://127.0.0.1:8480", is_loopback=True) as store:
        steps = await _steps(store)
        costs: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(bench.options.rounds):
            for name, step in steps.items():
                costs[name].append(await _cost_us(step))
    return {name: statistics.median(times) for name, times in costs.items()}


async def _steps(store: Store) -> dict[str, Step]:
    """Map each compared check to a function that runs it once."""
    async with store.database.transaction() as transaction:
        org = await organisations.create_organisation(transaction, "north", "North")
        client, _ = await clients.create_client(transaction, org.id, "a client", ["read:products"])
    token = tokens.issue(store, client.id, client.id, client.scopes)
    headers = Headers([(b"authorization", f"Bearer {token}".encode())])
    authenticator = Authenticator(replace(store))
    opaque_token_hash = secrets.digest(secrets.new_secret("css"))
    key = ECKey.generate_key("P-256")
    signed_token = jwt.encode({"alg": "ES256"}, {"sub": client.id}, key)

    async def empty_turn() -> object:
        return None

    async def check_claims() -> object:
        return store.tokens.verify(token)

    async def find_caller() -> object:
        return await authenticator.caller_of(headers, ADDRESS)

    async def check_revocation() -> object:
        return await store.versions()

    async def look_up_session() -> object:
        return await store.database.fetch_one(SESSION, opaque_token_hash, 0)

    async def check_signature() -> object:
        return jwt.decode(signed_token, key, ["ES256"])

    return {
        "an empty turn": empty_turn,
        "known: claims": check_claims,
        "known: was anything revoked?": check_revocation,
        "known: claims, revocation, caller": find_caller,
        "opaque token, looked up": look_up_session,
        "signature checked each time": check_signature,
    }


async def _cost_us(step: Step) -> float:
    """Return the CPU microseconds of this process for one call of the function."""
    for _ in range(100):
        await step()
    began_s = time.process_time()
    for _ in range(TURNS):
        await step()
    return (time.process_time() - began_s) / TURNS * 1e6


if __name__ == "__main__":
    with harness.bench("tokens", "What a token costs a request", needs_load=False) as running:
        for database in running.options.databases:
            measure(running, database)
