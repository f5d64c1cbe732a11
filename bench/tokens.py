"""Measures the CPU time of checking a token that is already cached: its signature and claims, and whether it was
revoked. Compares this time with looking up an opaque token, and with verifying the signature each time. Everything runs
in this process, one check at a time."""

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
    return {name: statistics.median(each) for name, each in costs.items()}


async def _steps(store: Store) -> dict[str, Step]:
    """Map each compared check to a function that runs it once."""
    async with store.database.transaction() as transaction:
        org = await organisations.create_organisation(transaction, "north", "North")
        client, _ = await clients.create_client(transaction, org.id, "a client", ["read:products"])
    token = tokens.issue(store, client.id, client.id, client.scopes)
    headers = Headers([(b"authorization", f"Bearer {token}".encode())])
    gate = Authenticator(replace(store))
    opaque = secrets.digest(secrets.new_secret("css"))
    key = ECKey.generate_key("P-256")
    foreign = jwt.encode({"alg": "ES256"}, {"sub": client.id}, key)

    async def nothing() -> object:
        return None

    async def claims() -> object:
        return store.tokens.verify(token)

    async def known() -> object:
        return await gate.caller_of(headers, ADDRESS)

    async def revocation() -> object:
        return await store.versions()

    async def looked_up() -> object:
        return await store.database.fetch_one(SESSION, opaque, 0)

    async def signature() -> object:
        return jwt.decode(foreign, key, ["ES256"])

    return {
        "an empty turn": nothing,
        "known: claims": claims,
        "known: was anything revoked?": revocation,
        "known: claims, revocation, caller": known,
        "opaque token, looked up": looked_up,
        "signature checked each time": signature,
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
        for each in running.options.databases:
            measure(running, each)
