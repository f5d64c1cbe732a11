"""No regular expression takes more than linear time on any text."""

import re
from collections import deque
from typing import Any

import pytest

from tests.scaling import patterns
from tests.scaling.measuring import growth

LONGEST = 4_000
SHORTER = {
    # Titles have 200 characters at most.
    "countersign.store.catalog.names": 200,
    # The author of a module writes these names.
    "countersign.declare.rules.fields": 200,
    # Statements of the source itself.
    "countersign.kernel.database.migrate": 400,
}
"""Modules whose expressions match only short texts, with the maximum length."""


def costly(module_pattern: patterns.ModulePattern, longest: int) -> list[str]:
    """Return the attacks on which the pattern takes more than linear time."""
    complaints: list[str] = []
    is_bytes = isinstance(module_pattern.pattern.pattern, bytes)
    for head, pump, tail in patterns.attacks(module_pattern.pattern):
        if not pump:
            continue

        def make(size: int, head: str = head, pump: str = pump, tail: str = tail) -> str | bytes:
            text = head + pump * (size // len(pump)) + tail
            return text.encode("latin-1", "replace") if is_bytes else text

        def search(text: str | bytes, pattern: re.Pattern[Any] = module_pattern.pattern) -> None:
            if module_pattern.is_anchored:
                pattern.match(text)
                pattern.fullmatch(text)
            else:
                deque(pattern.finditer(text), maxlen=0)

        grown = growth(make, search, longest)
        if not grown.is_linear:
            complaints.append(
                f"{module_pattern.module} {module_pattern.pattern.pattern!r:.80}: {head!r} {pump!r}* {tail!r}: {grown}"
            )
            break
    return complaints


def test_expressions_that_take_quadratic_time_are_found() -> None:
    quadratic = patterns.ModulePattern("planted", re.compile(r"<([^>]+)>\s*;"), is_anchored=False)

    assert costly(quadratic, LONGEST)


def test_regular_expressions_take_linear_time() -> None:
    module_patterns = patterns.patterns()
    complaints = [
        line for pattern in module_patterns if pattern.module not in SHORTER for line in costly(pattern, LONGEST)
    ]

    assert len(module_patterns) > 150
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("module", sorted(SHORTER))
def test_expressions_for_short_texts_are_cheap_at_their_limit(module: str) -> None:
    """They may take more than linear time, but only a few milliseconds for a question."""
    module_patterns = [pattern for pattern in patterns.patterns() if pattern.module == module]

    assert module_patterns
    for name in module_patterns:
        for head, pump, tail in patterns.attacks(name.pattern):
            # Runs of blanks become one blank before a question is read.
            text = " ".join((head + pump * 400 + tail)[: SHORTER[module]].split())
            grown = growth(lambda _, text=text: text, name.pattern.search, 4)
            assert grown.costs[2] < 0.05, f"{name.pattern.pattern!r:.80}: {pump!r}: {grown}"
