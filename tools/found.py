"""Generates docs/results/found.md from the numbers that the long tests wrote into the result files in the same folder.

python tools/found.py
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).parents[1] / "docs/results"
HEAD = """# What the long tests found

`tools/found.py` generates this page from the result files (`*.jsonl`). Each test that passes with `--full` adds a line
to such a file; a test that fails adds none. The page shows the last line of each variant of a test. Counts are sums
over the variants. For a measurement, the page shows the largest value.
"""


_MEASURED = re.compile(r"_(s|ms|mib|kib|each)$|wanted|seed|seconds|rounds")
"""Matches the names of figures that are measurements or settings and not counts of events."""


class Line(NamedTuple):
    """The last result of one variant of a test."""

    commit: str
    when: str
    figures: Mapping[str, object]


def newest(file: Path) -> dict[str, list[Line]]:
    """Map each test to the last lines of its variants."""
    last_by_name: dict[str, Line] = {}
    for text in file.read_text(encoding="utf-8").splitlines():
        entry = json.loads(text)
        last_by_name[entry["test"]] = Line(entry["commit"], entry["when"][:10], entry["figures"])
    lines_by_name: dict[str, list[Line]] = defaultdict(list)
    for test, line in last_by_name.items():
        lines_by_name[test.partition("[")[0]].append(line)
    return lines_by_name


def combine_figures(lines: Sequence[Line]) -> Iterator[str]:
    """Yield each figure with its name, combined over all variants."""
    values: dict[str, list[object]] = defaultdict(list)
    for line in lines:
        for name, value in line.figures.items():
            values[name].append(value)
    for name, line_values in values.items():
        shown_name = name.replace("_", " ")
        numbers = [value for value in line_values if isinstance(value, int | float)]
        if len(numbers) < len(line_values):
            yield f"{shown_name} {', '.join(dict.fromkeys(map(str, line_values)))}"
        elif _MEASURED.search(name) or any(isinstance(value, float) for value in numbers):
            yield f"{shown_name} {'≤ ' if len(set(numbers)) > 1 else ''}{max(numbers):,g}"
        else:
            yield f"{shown_name} {sum(numbers):,}"


def section(file: Path) -> Iterator[str]:
    """Yield the Markdown lines for one result file."""
    yield f"## {file.stem}"
    yield ""
    yield "| test | variants | commits | last | found |"
    yield "|---|---:|---|---|---|"
    for test, lines in sorted(newest(file).items()):
        path, _, name = test.partition("::")
        test_link = f"[{name.removeprefix('test_').replace('_', ' ')}](../../{path})"
        commits = ", ".join(sorted({line.commit for line in lines}))
        last_date, figures = max(line.when for line in lines), "; ".join(combine_figures(lines))
        yield f"| {test_link} | {len(lines)} | {commits} | {last_date} | {figures} |"
    yield ""


def main() -> None:
    """Write the page."""
    lines = [HEAD]
    for file in sorted(RESULTS.glob("*.jsonl")):
        lines += section(file)
    (RESULTS / "found.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
