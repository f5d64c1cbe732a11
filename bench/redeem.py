"""POST /redeem, durable: 32 clients, a new code in every request, 2,000 persons; without and with an Idempotency-Key.

The floors insert one row durably: each in a transaction of its own, and through the product's own group commit.
"""

import json
import uuid
from contextlib import ExitStack

import harness
import seed
from contenders.peer import token_of
from harness import Bench, Contender, Requests
from processes import Worker, worker

SIZE = seed.Size(products=1_000, persons=2_000, codes=400_000)
WANTED = {"sqlite": 2_500, "postgres": 1_500}


def requests(seeded: seed.Seeded, name: str, *, key: bool = False) -> Requests:
    """Every code once, by a person who does not own its product yet: code c is of batch c mod 250, its person is
    c div 250 mod 2,000."""
    tokens = [token_of(person) for person in seeded.persons] if name == "peer" else seeded.tokens
    path = "/api/v1/redeem" if name.startswith("ours") else "/redeem"
    half = len(seeded.codes) // 2
    made: list[bytes] = []
    for number in range(half if key else 0, 2 * half if key else half):
        headers = {"Authorization": f"Bearer {tokens[number // seed.BATCHES % len(tokens)]}"}
        if key:
            headers["Idempotency-Key"] = str(uuid.uuid4())
        made.append(harness.post(path, json.dumps({"code": seeded.codes[number]}).encode(), **headers))
    return Requests(made, once=True)


def redeemed(bench: Bench, database_url: str) -> int:
    """How many codes were used, as the database itself says."""
    if database_url.startswith("sqlite"):
        import apsw

        connection = apsw.Connection(database_url.removeprefix("sqlite:///"))
        ((count,),) = connection.execute("SELECT sum(uses) FROM code").fetchall()
        connection.close()
        return int(count)
    assert bench.cluster is not None
    return int(bench.cluster.sql("SELECT sum(uses) FROM distribution.code", database_url))


def measure(bench: Bench, database: str) -> None:
    """All contenders on copies of one store."""
    with ExitStack() as stack:
        seeded = stack.enter_context(seed.new(database, SIZE, bench.folder, bench.cluster))

        def serve(name: str) -> tuple[Worker, str]:
            copied = stack.enter_context(seed.copy(seeded, bench.cluster))
            place = {"database_url": copied.database_url, "data": str(copied.data), "writes": True}
            started = worker({"contender": name, **place}, bench.folder, bench.cores)
            return stack.enter_context(started), copied.database_url

        served = {name: serve(name) for name in ("floor", "floor-group", "ours", "peer")}
        workers = {name: each for name, (each, _) in served.items()}
        asked = {name: requests(seeded, name) for name in workers}
        table = bench.compare(
            database, "a code each", [Contender(name, workers[name], asked[name]) for name in workers]
        )
        with_key = bench.compare(
            database,
            "a code each, with Idempotency-Key",
            [
                Contender("floor-group", workers["floor-group"], requests(seeded, "floor", key=True)),
                Contender("ours keyed", workers["ours"], requests(seeded, "ours", key=True)),
            ],
        )
        for name in ("ours", "peer"):
            print(f"  {name}: {redeemed(bench, served[name][1])} codes used, as the database says")
        rates = {each.name: each.req_s for each in (*table.contenders, *with_key.contenders)}
        bench.aim(f"{database}, redemptions a second", rates["ours"], WANTED[database])
        bench.aim(f"{database}, with Idempotency-Key", rates["ours keyed"], WANTED[database])
        bench.aim(f"{database}, to FastAPI + SQLAlchemy", table.ratios["ours/peer"], 4)


if __name__ == "__main__":
    with harness.bench("redeem", "POST /redeem, durable, 32 clients") as running:
        for each in running.options.databases:
            measure(running, each)
