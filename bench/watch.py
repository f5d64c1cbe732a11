"""Measures what the triggers of `countersign connect watch` add to statements of other applications: an UPDATE of one
row by its key, of 100 rows, and an INSERT, with and without the triggers, in turns."""

import random
import statistics
import time

import connected
import harness
import psycopg
from harness import Bench

ROWS = 10_000
STATEMENTS = {
    "UPDATE of one row": "UPDATE {table} SET visits = visits + 1 WHERE id = %(row)s",
    "UPDATE of 100 rows": "UPDATE {table} SET visits = visits + 1 WHERE id BETWEEN %(row)s AND %(row)s + 99",
    "INSERT of one row": "INSERT INTO {table} (id, name) VALUES ((SELECT max(id) + 1 FROM {table}), 'Ada')",
}
AIM_MS = 0.5
"""The most that one row may take longer."""
CLEARED_EVERY = 200
"""The number of statements after which the records are deleted, as a server does it."""


def _watched(bench: Bench, url: str) -> None:
    from countersign.connect import watch
    from countersign.declare import text
    from countersign.declare.registry import Registry
    from countersign.records import base_models

    if bench.cluster is None:
        raise LookupError("PostgreSQL is not running")
    source = connected.MODULE.replace('Table("', 'Table("w.')
    module = text.build(text.read(source), "shop.py")
    registry = Registry((base_models.MODULE, module))
    models = [each for each in registry.models.values() if each.table is not None]
    bench.cluster.sql("CREATE ROLE countersign_server", url)
    bench.cluster.sql(watch.script(models, "countersign_server", "shop.py"), url)


def run(bench: Bench, count: int) -> None:
    """Measure each statement on two equal tables."""
    url = connected.create(bench, "postgres", "watch", "CREATE SCHEMA w; SET search_path = w; " + connected.script(
        "postgres", ROWS
    ))  # fmt: skip
    if bench.cluster is None:
        raise LookupError("PostgreSQL is not running")
    bench.cluster.sql(connected.script("postgres", ROWS), url)
    _watched(bench, url)
    with psycopg.connect(url, autocommit=True) as connection:
        for is_synchronous in (False, True):
            connection.execute(f"SET synchronous_commit = {'on' if is_synchronous else 'off'}".encode())
            for title, statement in STATEMENTS.items():
                label = f"{title}, synchronous_commit {'on' if is_synchronous else 'off'}"
                _compare(bench, connection, label, statement, count)


def _compare(
    bench: Bench, connection: psycopg.Connection[tuple[object, ...]], title: str, statement: str, count: int
) -> None:
    times_ms: dict[str, list[float]] = {"public.customer": [], "w.customer": []}
    for number in range(count):
        row = random.randint(1, ROWS - 100)
        for table in sorted(times_ms, reverse=bool(number % 2)):
            text = statement.format(table=table).encode()
            began_s = time.perf_counter()
            connection.execute(text, {"row": row})
            times_ms[table].append((time.perf_counter() - began_s) * 1000)
        if number % CLEARED_EVERY == 0:
            connection.execute("DELETE FROM countersign_watch.outside_change")
            connection.execute("UPDATE countersign_watch.progress SET read_to = (SELECT last_value FROM "
                               "countersign_watch.outside_change_id_seq)")  # fmt: skip
            connection.execute("VACUUM countersign_watch.outside_change, countersign_watch.progress")
    without, watched = (statistics.median(each) for each in times_ms.values())
    p99_ms = {name: round(statistics.quantiles(each, n=100)[-1], 3) for name, each in times_ms.items()}
    bench.other[title] = {
        "without_ms": round(without, 3), "watched_ms": round(watched, 3), "ratio": round(watched / without, 2),
        "without_p99_ms": p99_ms["public.customer"], "watched_p99_ms": p99_ms["w.customer"],
    }  # fmt: skip
    print(f"{title}: {without:.3f} ms without, {watched:.3f} ms watched")
    if "one row" in title:
        bench.aim(f"{AIM_MS} ms over what the triggers add to {title}", AIM_MS / max(watched - without, 0.001), 1)


if __name__ == "__main__":
    with harness.bench("watch", "Triggers that record changes", needs_load=False) as current:
        run(current, 300 if current.options.is_quick else 3_000)
