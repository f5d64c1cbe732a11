"""Questions that are to break what answers them, or to learn from it what nobody may know."""

from tests.distribution.world import World


async def test_a_question_of_many_different_words_is_answered(world: World) -> None:
    """All runs of its words are looked for at once, in more columns than a row may have."""
    question = " ".join(f"w{number}" for number in range(119))

    answer = await world.call("POST", "/ask", json={"query": question})

    assert answer.status_code == 200, answer.text
    assert answer.json()["answer"].startswith("I cannot tell")
