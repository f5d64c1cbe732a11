"""Measures durable POST /redeem with 32 connections, 2,000 persons and a new code in every request, without and with an
Idempotency-Key.

Two floors show the least work that a redemption needs: each inserts one row durably. `floor` commits every row in its
own transaction. `floor-group` commits the rows of concurrent requests together, with the product's group commit.
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
TARGETS = {"sqlite": 2_500, "postgres": 1_500}


def requests(seed_data: seed.Seeded, name: str, *, with_key: bool = False) -> Requests:
    """Return one request for each code of the first half of all codes or, with a key, of the second half.

    Each person redeems codes of products that they do not own yet: code c belongs to batch c mod 250, and person
    (c div 250) mod 2,000 redeems it.
    """
    tokens = [token_of(person) for person in seed_data.persons] if name == "peer" else seed_data.tokens
    path = "/api/v1/redeem" if name.startswith("ours") else "/redeem"
    half_count = len(seed_data.codes) // 2
    requests_made: list[bytes] = []
    for number in range(half_count if with_key else 0, 2 * half_count if with_key else half_count):
        headers = {"Authorization": f"Bearer {tokens[number // seed.BATCHES % len(tokens)]}"}
        if with_key:
            headers["Idempotency-Key"] = str(uuid.uuid4())
        requests_made.append(harness.post(path, json.dumps({"code": seed_data.codes[number]}).encode(), **headers))
    return Requests(requests_made, is_single_pass=True)


def count_redeemed(bench: Bench, database_url: str) -> int:
    """Return the number of redeemed codes in the database."""
    if database_url.startswith("sqlite"):
        import apsw

        connection = apsw.Connection(database_url.removeprefix("sqlite:///"))
        ((count,),) = connection.execute("SELECT sum(uses) FROM code").fetchall()
        connection.close()
        return int(count)
    assert bench.cluster is not None
    return int(bench.cluster.sql("SELECT sum(uses) FROM distribution.code", database_url))


def measure(bench: Bench, database: str) -> None:
    """Measure all contenders on copies of one store."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(seed.new(database, SIZE, bench.folder, bench.cluster))

        def serve(name: str) -> tuple[Worker, str]:
            seed_copy = stack.enter_context(seed.copy(seed_data, bench.cluster))
            worker_config = {"database_url": seed_copy.database_url, "data": str(seed_copy.data), "writes": True}
            started_worker = worker({"contender": name, **worker_config}, bench.folder, bench.cores)
            return stack.enter_context(started_worker), seed_copy.database_url

        served_copies = {name: serve(name) for name in ("floor", "floor-group", "ours", "peer")}
        workers = {name: each for name, (each, _) in served_copies.items()}
        requests_by_name = {name: requests(seed_data, name) for name in workers}
        table = bench.compare(
            database, "a code each", [Contender(name, workers[name], requests_by_name[name]) for name in workers]
        )
        keyed_table = bench.compare(
            database,
            "a code each, with Idempotency-Key",
            [
                Contender("floor-group", workers["floor-group"], requests(seed_data, "floor", with_key=True)),
                Contender("ours keyed", workers["ours"], requests(seed_data, "ours", with_key=True)),
            ],
        )
        for name in ("ours", "peer"):
            print(f"  {name}: the database has {count_redeemed(bench, served_copies[name][1])} used codes")
        rates = {contender.name: contender.req_s for contender in (*table.contenders, *keyed_table.contenders)}
        bench.aim(f"{database}, redemptions a second", rates["ours"], TARGETS[database])
        bench.aim(f"{database}, with Idempotency-Key", rates["ours keyed"], TARGETS[database])
        bench.aim(f"{database}, to FastAPI + SQLAlchemy", table.ratios["ours/peer"], 4)


if __name__ == "__main__":
    with harness.bench("redeem", "POST /redeem, durable, 32 clients") as running:
        for database in running.options.databases:
            measure(running, database)
