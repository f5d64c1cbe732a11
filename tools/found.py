"""Writes docs/results/found.md anew: what the long tests counted and measured, from the lines that they left beside it.

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

Written by `tools/found.py` from the lines (`*.jsonl`) that tests left which passed with `--full`: of each test and each
of its variants the last line. Counts are sums over the variants; of what was measured the largest is shown. A test
that failed leaves no line.
"""


_MEASURED = re.compile(r"_(s|ms|mib|kib|each)$|wanted|seed|seconds|rounds")
"""Figures that are no counts of what happened."""


class Line(NamedTuple):
    """What one variant of a test left."""

    commit: str
    when: str
    figures: Mapping[str, object]


def newest(file: Path) -> dict[str, list[Line]]:
    """By test, without its variants: the last line of each variant."""
    last: dict[str, Line] = {}
    for text in file.read_text(encoding="utf-8").splitlines():
        entry = json.loads(text)
        last[entry["test"]] = Line(entry["commit"], entry["when"][:10], entry["figures"])
    found: dict[str, list[Line]] = defaultdict(list)
    for test, line in last.items():
        found[test.partition("[")[0]].append(line)
    return found


def combined(lines: Sequence[Line]) -> Iterator[str]:
    """Each figure over all variants, with its name."""
    values: dict[str, list[object]] = defaultdict(list)
    for line in lines:
        for name, value in line.figures.items():
            values[name].append(value)
    for name, each in values.items():
        shown = name.replace("_", " ")
        numbers = [value for value in each if isinstance(value, int | float)]
        if len(numbers) < len(each):
            yield f"{shown} {', '.join(dict.fromkeys(map(str, each)))}"
        elif _MEASURED.search(name) or any(isinstance(value, float) for value in numbers):
            yield f"{shown} {'≤ ' if len(set(numbers)) > 1 else ''}{max(numbers):,g}"
        else:
            yield f"{shown} {sum(numbers):,}"


def section(file: Path) -> Iterator[str]:
    """One file as Markdown lines."""
    yield f"## {file.stem}"
    yield ""
    yield "| test | variants | commits | last | found |"
    yield "|---|---:|---|---|---|"
    for test, lines in sorted(newest(file).items()):
        path, _, name = test.partition("::")
        shown = f"[{name.removeprefix('test_').replace('_', ' ')}](../../{path})"
        commits = ", ".join(sorted({line.commit for line in lines}))
        last, figures = max(line.when for line in lines), "; ".join(combined(lines))
        yield f"| {shown} | {len(lines)} | {commits} | {last} | {figures} |"
    yield ""


def main() -> None:
    """Write the page."""
    lines = [HEAD]
    for file in sorted(RESULTS.glob("*.jsonl")):
        lines += section(file)
    (RESULTS / "found.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
