"""Questions that try to crash the search, or to reveal what is not public."""

from tests.store.world import World


async def test_a_question_of_many_different_words_is_answered(world: World) -> None:
    """All runs of its words are searched at once, in more columns than a row may have."""
    question = " ".join(f"w{number}" for number in range(119))

    answer = await world.call("POST", "/ask", json={"query": question})

    assert answer.status_code == 200, answer.text
    assert answer.json()["answer"].startswith("I cannot tell")


async def test_a_value_with_marks_of_sql_and_like_is_a_value(world: World) -> None:
    await world.product("north", "one", title="One", status="public")

    for text in ('title="%"', "tag=\"' OR 1=1 --\"", 'text="_"', 'org="%"', 'product="one\' OR \'1"', 'license="%"'):
        answer = await world.call("POST", "/ask", json={"query": text})

        assert (answer.status_code, answer.json()["sources"]) == (200, []), text
