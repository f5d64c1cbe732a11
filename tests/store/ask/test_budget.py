"""One question causes a limited amount of work, in any wording. tests/scaling measures the CPU time of parsing it."""

import pytest

from countersign.store.ask import word_lookup
from countersign.store.ask.lexicon import MAX_TOKENS, tokens_of
from countersign.store.context import Store
from tests.store.ask.shelf import ask_shelf
from tests.store.world import World


def test_no_more_than_400_words_are_read() -> None:
    assert len(tokens_of("w " * 1_000)) == MAX_TOKENS


def test_no_more_than_300_runs_of_words_are_looked_up() -> None:
    question = " ".join(f"w{number}" for number in range(300))

    assert len(word_lookup.spans(question, tokens_of(question))) == word_lookup.MAX_SPANS


async def test_only_the_first_unknown_words_are_looked_up(shelf: Store) -> None:
    unknown_words = [f"zorb{number}" for number in range(100)]

    answer = await ask_shelf(shelf, " ".join(unknown_words))

    assert answer.status == "refused"
    assert len(answer.unused) <= 100
    assert word_lookup.MAX_UNKNOWN < 100


@pytest.mark.parametrize("text", ["w " * 61, "x" * 300, "(" * 60, "\ufdfa" * 2_000, "games and " * 200])
async def test_questions_out_of_proportion_are_answered(world: World, text: str) -> None:
    answer = await world.call("POST", "/ask", json={"query": text[:2_000]})

    assert answer.status_code == 200, answer.text
    assert answer.json()["sources"] == []
