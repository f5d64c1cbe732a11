"""Generates docs/results/tables.md from the results that the benchmarks wrote into the same folder.

python bench/report.py
"""

from collections.abc import Iterator

import msgspec
from harness import RESULTS, Aim, Table

HEAD = """# Tables

`bench/report.py` generates this page from the JSON files in the same folder. The [README](README.md) explains the
terms. The column "rounds" shows the slowest and the fastest round. If they differ much, the machine was busy with other
work, and only CPU per request and the ratios are meaningful. "Ours to it" is the median over the rounds of the ratio of
requests per second.
"""
ORDER = (
    *("catalog_page", "product", "library", "redeem", "records_read", "records_peers", "transfer", "startup", "jobs"),
    *("tools_mcp", "connected", "connected_writers", "growth", "workers"),
)


class Record(msgspec.Struct, kw_only=True):
    """The results of one benchmark."""

    benchmark: str
    at: str
    machine: dict[str, str]
    settings: dict[str, str | int]
    tables: list[Table]
    other: dict[str, object]
    aims: list[Aim]


def _table(table: Table) -> Iterator[str]:
    yield f"**{table.variant}, {table.database}**"
    yield ""
    yield "| | req/s | rounds | p50 ms | p99 ms | CPU µs | database µs | ours to it |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for contender in table.contenders:
        ratios = [f"{ratio:.2f}" for name, ratio in table.ratios.items() if name.endswith(f"/{contender.name}")]
        rounds = f"{min(contender.rounds_req_s):,.0f} to {max(contender.rounds_req_s):,.0f}"
        yield (
            f"| {contender.name} | {contender.req_s:,.0f} | {rounds} | {contender.p50_ms:.2f} | {contender.p99_ms:.2f} "
            f"| {contender.cpu_us:.0f} | {contender.database_cpu_us:.0f} | {' '.join(ratios)} |"
        )
    for name, reason in table.skipped.items():
        yield f"| {name} | skipped: {reason} | | | | | | |"
    yield ""


def _other(value: object) -> str:
    """Return the text of a figure, or of several figures with their names."""
    if isinstance(value, dict):
        return "; ".join(f"{name} {_other(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(map(_other, value))
    if isinstance(value, str):
        return value
    return f"{value:,.3g}" if isinstance(value, float) and value < 100 else f"{value:,.0f}"


def section(record: Record) -> Iterator[str]:
    """Yield the Markdown lines for one benchmark."""
    settings = record.settings
    yield f"## {record.benchmark}"
    yield ""
    yield f"`.venv/bin/python bench/{record.benchmark}.py --rounds {settings['rounds']}`, {record.at},"
    yield f"load average {record.machine['load_average']} at the end."
    yield ""
    for table in record.tables:
        yield from _table(table)
    if record.other:
        yield from (f"- {name}: {_other(value)}" for name, value in record.other.items())
        yield ""


def main() -> None:
    """Write the page, first with all aims and then with each benchmark."""
    files = [
        RESULTS / f"{name}{engine_suffix}.json" for name in ORDER for engine_suffix in ("", "-sqlite", "-postgres")
    ]
    records = [msgspec.json.decode(file.read_bytes(), type=Record) for file in files if file.exists()]
    lines = [HEAD, "## Aims", "", "| benchmark | aim | wanted | measured | |", "|---|---|---:|---:|---|"]
    for record in records:
        for aim in record.aims:
            verdict = "met" if aim.met else "**missed**"
            lines.append(f"| {record.benchmark} | {aim.text} | {aim.wanted:,g} | {_other(aim.measured)} | {verdict} |")
    lines.append("")
    for record in records:
        lines += section(record)
    (RESULTS / "tables.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
