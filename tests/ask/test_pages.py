"""The examples of the documentation's pages on questions are answered as they say."""

import re
from pathlib import Path

import msgspec

from countersign.store.catalog.filter import Filter, error_in
from tests.ask import gauge
from tests.store.world import World

DOCS = Path(__file__).parents[2] / "docs"
HOW_TO, EXPLANATION = DOCS / "how-to" / "ask.md", DOCS / "explanation" / "ask.md"


def blocks(page: Path, language: str) -> list[str]:
    """The lines of the page's blocks in this language."""
    found = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [line for block in found for line in block.splitlines()]


async def test_every_question_of_the_page_is_answered(catalog: World) -> None:
    questions = [{"question": line} for line in blocks(HOW_TO, "questions")]
    follow_ups = [line.split(" || ") for line in blocks(HOW_TO, "follow-ups")]
    lines = [*questions, *({"question": last, "prev": before} for *before, last in follow_ups)]
    async with gauge.asking(catalog.store) as ask:
        answers = [await ask(line) for line in lines]

    assert len(lines) > 20
    assert [each["answer"] for each in answers if each["status"] != "answered"] == []


def test_the_filters_of_the_page_are_filters() -> None:
    found = [msgspec.json.decode(line, type=Filter) for line in blocks(EXPLANATION, "filter")]

    assert found
    assert [error_in(each) for each in found] == [None] * len(found)
