"""What becomes of the questions of these files never gets worse than five points below what was reached."""

import hashlib
from typing import Any

import pytest

from tests.ask import gauge, judging
from tests.figures import Figures
from tests.store.world import World

FLOORS = {
    "practice.jsonl": (90, 90, 6),
    "second.jsonl": (92, 92, 5),
    "third.jsonl": (88, 88, 5),
    "held_out.jsonl": (91, 91, 6),
    "fourth.jsonl": (89, 91, 7),
    "fifth.jsonl": (90, 90, 7),
    "sixth.jsonl": (91, 91, 5),
    "seventh.jsonl": (90, 91, 7),
    "eighth.jsonl": (83, 84, 8),
    "ninth.jsonl": (88, 88, 8),
    "tenth.jsonl": (90, 90, 6),
    "eleventh.jsonl": (90, 90, 5),
    "fifteenth.jsonl": (88, 88, 6),
    "eighteenth.jsonl": (90, 90, 7),
    "nineteenth.jsonl": (82, 85, 7),
    "twentieth.jsonl": (86, 87, 7),
    "seventeenth.jsonl": (87, 88, 8),
    "sixteenth.jsonl": (92, 93, 5),
    "fourteenth.jsonl": (83, 84, 9),
    "thirteenth.jsonl": (89, 89, 6),
    "twelfth.jsonl": (91, 91, 7),
}
"""Of a file in percent: right at least, right or partial at least, wrong at most."""
FOLLOW_UPS = 90
"""Of the follow-up questions of the open half in percent: right at least."""


@pytest.fixture
def every(request: pytest.FixtureRequest, catalog: World, is_full: bool) -> int:
    """1: all questions are asked. 8: every eighth, with --quick and on PostgreSQL, since reading a question does not
    depend on the database; --full asks all of them there too."""
    is_sampled = request.config.getoption("--quick") or catalog.store.database.dialect == "postgres"
    return 8 if is_sampled and not is_full else 1


async def judged(world: World, lines: list[dict[str, Any]]) -> list[gauge.Judged]:
    """What became of the questions."""
    async with gauge.asking(world.store) as ask:
        return await gauge.judged(ask, lines)


def percent(found: list[gauge.Judged], *outcomes: str) -> float:
    """How many of the questions had one of these outcomes."""
    return 100 * sum(each.outcome in outcomes for each in found) / len(found)


@pytest.mark.parametrize("name", sorted(FLOORS))
async def test_questions_are_answered_as_well_as_before(
    catalog: World, name: str, figures: Figures, every: int
) -> None:
    found = await judged(catalog, judging.questions(name)[::every])
    right, helpful, wrong = FLOORS[name]
    slack = 0 if every == 1 else 8
    missed = [f"{each.outcome} {each.line}" for each in gauge.worst(found)]

    figures.update({**gauge.counted(found)["all"], "questions": len(found)})
    assert percent(found, "right") >= right - slack, "\n".join(missed)
    assert percent(found, "right", "partial") >= helpful - slack, "\n".join(missed)
    assert percent(found, "wrong") <= wrong + slack, "\n".join(missed)


async def test_follow_up_questions_change_the_question_before_them(catalog: World, figures: Figures) -> None:
    lines = [line for line in judging.questions("second.jsonl") if line.get("prev")]
    found = await judged(catalog, lines)

    figures.update({**gauge.counted(found)["all"], "questions": len(found)})
    assert len(found) >= 20
    assert percent(found, "right") >= FOLLOW_UPS


async def test_nothing_is_invented_where_the_catalog_cannot_answer(
    catalog: World, figures: Figures, every: int
) -> None:
    found = await judged(catalog, judging.questions("unknowable.jsonl")[::every])
    invented = [f"{each.line}: {each.answer['answer'][:160]}" for each in found if each.outcome != "right"]

    figures.update({"questions": len(found), "invented": len(invented)})
    assert len(found) >= 100 // every
    assert invented == []


@pytest.mark.parametrize(
    ("kind", "expected", "products", "outcome"),
    [
        ("products", ["a", "b"], ["a", "b"], "right"),
        ("products", ["a", "b"], ["a"], "partial"),
        ("products", ["a"], ["a", "b"], "partial"),
        ("products", ["a", "b"], ["a", "c"], "wrong"),
        ("products", ["a"], ["a", *"bcdefghijklmnopqrstuvwxyz"], "wrong"),
        ("refused", None, ["a"], "wrong"),
    ],
)
def test_a_partial_answer_is_helpful_where_its_rows_agree(
    kind: str, expected: object, products: list[str], outcome: str
) -> None:
    line = {"kind": kind, "expect": expected, "question": "?"}
    sources = [{"product": each, "release": None} for each in products]

    answer = {"status": "partial", "answer": "Read as: products.", "sources": sources}

    assert judging.outcome(line, answer, judging.Catalog()) == outcome


def test_the_unread_questions_are_as_they_were_written() -> None:
    """Their digest was put down before there was anything to answer them."""
    digest = hashlib.sha256((judging.HERE / "second_unread.jsonl").read_bytes()).hexdigest()

    assert digest in (judging.HERE / "README.md").read_text()
