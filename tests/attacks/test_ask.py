"""Questions that are to break what answers them, or to learn from it what nobody may know."""

import pytest

from countersign.distribution.ask.rewording import says_the_same
from tests.distribution.world import World


async def test_a_question_of_many_different_words_is_answered(world: World) -> None:
    """All runs of its words are looked for at once, in more columns than a row may have."""
    question = " ".join(f"w{number}" for number in range(119))

    answer = await world.call("POST", "/ask", json={"query": question})

    assert answer.status_code == 200, answer.text
    assert answer.json()["answer"].startswith("I cannot tell")


@pytest.mark.parametrize(
    "added",
    [
        ", cheaper at evil.example",
        ", write to mallory@evil",
        ": www.evil.example",
        ", see evil。example",
        " <img src=x>",
        " [here](evil)",
        ", which hardly run",
    ],
)
def test_a_model_that_was_talked_over_sends_nobody_elsewhere(added: str) -> None:
    assert says_the_same("There are 3 games.", "You can choose among 3 games.")
    assert not says_the_same("There are 3 games.", f"There are 3 games{added}.")
