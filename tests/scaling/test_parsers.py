"""Every parser takes time in proportion to its input, on the worst input of up to its limit."""

from collections.abc import Iterator

import pytest

from tests.scaling.measuring import growth
from tests.scaling.parsers import PARSERS, Parser
from tests.scaling.texts import marks

SAMPLE = 50_000
"""Characters or bytes at which long inputs are measured, unless the run is full."""


def cases() -> Iterator[object]:
    """Yield every parser, with a sample of its longest input and, in a full run, with all of it."""
    for name, parser in PARSERS.items():
        yield pytest.param(name, min(parser.limit, SAMPLE), id=name)
        if parser.limit > SAMPLE:
            yield pytest.param(name, parser.limit, id=f"{name}, in full", marks=pytest.mark.full)


def superlinear(parser: Parser, longest: int) -> list[str]:
    """Return the inputs on which the parser takes more than linear time."""
    grown = {name: growth(make, parser.work, longest) for name, make in parser.inputs.items()}
    return [f"{name}: {value}" for name, value in grown.items() if not value.is_linear]


@pytest.mark.parametrize(("name", "longest"), list(cases()))
def test_a_parser_takes_linear_time(name: str, longest: int) -> None:
    assert superlinear(PARSERS[name], longest) == []


def test_a_parser_that_takes_quadratic_time_is_found() -> None:
    import unicodedata

    old = Parser("", "", 0, lambda text: unicodedata.normalize("NFC", text), {"marks": marks})

    assert superlinear(old, 8_000)
