"""Measures POST /ask with 100,000 products. One caller asks 400 mixed questions once; the results are p50 and p95.

With `--questions FILE …`, the program instead evaluates the answers to the questions in files like those in tests/ask.
It prints the number of outcomes by kind of asker, and the 20 worst answers.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

import harness
import httpx
import seed
from processes import Cluster, Cores, postgres

from countersign.kernel.database.port import Database
from countersign.store.app import create, open_store
from countersign.store.lifespan import MIGRATIONS
from tests.ask import gauge

PRODUCTS = 100_000
QUESTIONS = 400
AIM_P95_MS = 30.0
MAX_PRINTED = 20
RESULTS = harness.RESULTS / "ask.json"
KINDS = ("games", "apps", "tools", "products")
PLATFORMS = ("Linux", "Windows", "macOS")
TEMPLATES = (
    "What is the latest version of {title}?", "Does {title} run on {platform}?", "What is {title}?",
    "Who makes {title}?", "What changed in {title} 1.0.0?", "When was {title} 1.0.0 released?",
    "Compare {title} and {other}", "What is the latest version of {typo}?", "Does {typo} run on {platform}?",
    "Which {kind} run on {platform}?", "How many {kind} run on {platform} but not on {another}?",
    "Which free {kind} are there?", "How many {kind} are tagged {tag}?", "{tag} {kind} for {platform}",
    "Which {kind} have a beta but no stable release?", "How many {kind} does Benchmark Works publish?",
    "Which {kind} were released on 2026-01-02?", "How many releases were published on 2026-01-01?",
    "Which {kind} have not been updated since 2026-01-02?", "What are the 5 newest {kind}?",
    'Which {kind} have "{word}" in the title?', "games about {word}", "Is there a {tag} tool for {platform}?",
    "How much does {title} cost?", "Which {kind} are the best?", "What is the latest version of Unheard Of Thing?",
)  # fmt: skip


def typo(title: str, rng: random.Random) -> str:
    """Return the title with two letters of its first word swapped."""
    position = rng.randrange(1, 3)
    return title[:position] + title[position + 1] + title[position] + title[position + 2 :]


def questions(seed_data: seed.Seeded) -> list[str]:
    """Return mixed questions. Every call returns the same questions."""
    rng = random.Random(1)
    titles = [title for title, _ in seed_data.pages]
    questions_made: list[str] = []
    for number in range(QUESTIONS):
        title = rng.choice(titles)
        platform, other_platform = rng.sample(PLATFORMS, 2)
        parts = {"title": title, "other": rng.choice(titles), "typo": typo(title, rng), "platform": platform}
        parts |= {
            "another": other_platform,
            "kind": rng.choice(KINDS),
            "tag": rng.choice(("quiet", "harbor", "river")),
        }
        parts["word"] = rng.choice(("Lantern", "Meadow", title[-6:]))
        questions_made.append(TEMPLATES[number % len(TEMPLATES)].format(**parts))
    return questions_made


async def fill(database: Database) -> None:
    """Write what the migration would write for products that exist before it."""
    text = (resources.files(MIGRATIONS) / "0006_ask.sql").read_text()
    async with database.transaction() as transaction:
        await transaction.run(text[text.index("INSERT INTO catalog_public") :].rstrip().rstrip(";"))


async def measure(seed_data: seed.Seeded, cluster: Cluster | None) -> list[tuple[float, str]]:
    """Return the time of each answer in milliseconds with its question, the slowest first."""
    settings = seed.settings_of(seed_data)
    async with open_store(settings, seed.ROOT_URL, is_loopback=True) as store:
        await fill(store.database)
    if cluster is not None:
        # In an installation, autovacuum has collected the statistics.
        await asyncio.to_thread(cluster.sql, "VACUUM ANALYZE", seed_data.database_url)
    async with open_store(settings, seed.ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(create(store))
        async with httpx.AsyncClient(transport=transport, base_url=seed.ROOT_URL) as client:
            for question in questions(seed_data)[: len(TEMPLATES)]:
                await client.post("/api/v1/ask", json={"query": question})
            durations: list[tuple[float, str]] = []
            for question in questions(seed_data):
                began_s = time.perf_counter()
                answer = await client.post("/api/v1/ask", json={"query": question})
                durations.append(((time.perf_counter() - began_s) * 1000, question))
                assert answer.status_code == 200, (question, answer.text)
    return sorted(durations, reverse=True)


def measure_engines(engines: list[str]) -> None:
    """Print the figures of each engine with the slowest questions, and write the figures to docs/results."""
    figures: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(postgres(Cores.of_machine())) if "postgres" in engines else None
        for engine in engines:
            with seed.new(engine, seed.Size(PRODUCTS), folder, cluster) as seed_data:
                seed.add(seed_data, seed.search_tables(seed_data))
                durations = asyncio.run(measure(seed_data, cluster if engine == "postgres" else None))
            times = [each for each, _ in durations]
            p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            figures[engine] = {"p50_ms": round(p50, 1), "p95_ms": round(p95, 1), "worst_ms": round(max(times), 1)}
            sys.stdout.write(f"{engine}: p50 {p50:.1f} ms, p95 {p95:.1f} ms (aim {AIM_P95_MS:.0f})\n")
            sys.stdout.writelines(f"    {each:7.1f} ms  {question}\n" for each, question in durations[:8])
    results = {"benchmark": "ask", "products": PRODUCTS, "questions": QUESTIONS, "aim_p95_ms": AIM_P95_MS, **figures}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def count(file: Path) -> None:
    """Print the outcomes of the questions of a file by kind of asker, and the worst answers."""
    results = gauge.of_file(file)
    sys.stdout.write(f"{file.name:24}{''.join(f'{result:>9}' for result in gauge.OUTCOMES)}\n")
    for voice, counts in gauge.counted(results).items():
        sys.stdout.write(f"{voice:24}{''.join(f'{counts[result]:9}' for result in gauge.OUTCOMES)}\n")
    for result in gauge.worst(results)[:MAX_PRINTED]:
        expected = f"{result.line.get('kind', 'refused')} {json.dumps(result.line.get('expect'))}"
        sys.stdout.write(
            f"\n{result.outcome}: {result.line['id']} {result.line['question']}\n"
            f"    filter    {json.dumps(result.answer['query'])}\n"
            f"    answer    {result.answer['answer'][:300]}\n    expected  {expected[:300]}\n"
        )


def main() -> None:
    """Measure the engines, or count the outcomes of questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, nargs="+", help="files of questions whose answers are evaluated")
    parser.add_argument("engines", nargs="*", default=["sqlite", "postgres"])
    arguments = parser.parse_args()
    for file in arguments.questions or ():
        count(file)
    if not arguments.questions:
        measure_engines(arguments.engines)


if __name__ == "__main__":
    main()
