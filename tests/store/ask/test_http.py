"""POST and GET /ask: the documented answer and its stream."""

import json
from typing import Any

import pytest

from countersign.kernel import clock
from countersign.kernel.errors import Unavailable
from countersign.store.ask import answers
from countersign.store.ask.answers import QuestionAnswer
from tests.store.ask.shelf import NOW, QUESTION, TITLES, events
from tests.store.conftest import ROOT_URL
from tests.store.world import World


async def test_the_documented_question_has_the_documented_answer(shop: World) -> None:
    answer = await shop.call("POST", "/ask", json={"query": QUESTION})

    body = answer.json()
    assert answer.status_code == 200
    assert all(title in body["answer"] for title in TITLES)
    assert [source["product"] for source in body["sources"]] == ["hammer", "slow-rivers-maps", "whose-keys"]
    assert body["sources"][0]["url"].endswith("/api/v1/products/hammer")
    assert body["query"] == {"where": {"kind": {"any": ["tool"]}, "platform": {"any": ["windows"]}}}
    assert (body["status"], body["suggestions"], body["unused"]) == ("answered", [], [])
    assert body["confidence"] == 1
    assert [each["schema_object"]["@type"] for each in body["results"]] == ["SoftwareApplication"] * 3


async def test_get_answers_the_same(shop: World) -> None:
    posted_body = (await shop.call("POST", "/ask", json={"query": QUESTION, "query_id": "1"})).json()

    assert (await shop.call("GET", "/ask", params={"q": QUESTION, "query_id": "1"})).json() == posted_body
    assert (
        await shop.call("GET", f"{ROOT_URL}/ask", params={"query": QUESTION, "query_id": "1"})
    ).json() == posted_body


@pytest.mark.parametrize("text", ["", " \n ", "a" * 2_001])
async def test_an_empty_or_endless_question_is_refused_by_name(shop: World, text: str) -> None:
    post_answer = await shop.call("POST", "/ask", json={"query": text})
    get_answer = await shop.call("GET", "/ask", params={"q": text})

    assert (post_answer.status_code, post_answer.json()["errors"][0]["pointer"]) == (400, "/query")
    assert (get_answer.status_code, get_answer.json()["errors"][0]["parameter"]) == (400, "q")


async def test_without_a_question_there_is_no_answer(shop: World) -> None:
    answer = await shop.call("GET", "/ask")

    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (400, "q")


async def test_a_partial_answer_says_how_it_was_read_and_what_was_not_used(shop: World) -> None:
    answer = (await shop.call("GET", "/ask", params={"q": "Which glittering games run on Linux?"})).json()

    assert answer["status"] == "partial"
    assert answer["answer"].startswith('Read as: games on Linux. Not used: "glittering".')
    assert (answer["unused"], answer["confidence"]) == (["glittering"], 0.5)
    assert {each["product"] for each in answer["sources"]} == {"ember-and-ash", "slow-rivers", "windows-tycoon"}


@pytest.mark.parametrize(
    "text",
    ["Which glittering games run on Linux?", "Which Linux games are best for kids?", "Is Quill Pro any good?"],
)
async def test_every_suggestion_has_an_answer(shop: World, text: str) -> None:
    suggestions = (await shop.call("GET", "/ask", params={"q": text})).json()["suggestions"]

    assert suggestions
    for suggestion in suggestions:
        answer = (await shop.call("GET", "/ask", params={"q": suggestion})).json()
        assert answer["status"] == "answered", (suggestion, answer["answer"])


async def test_a_suggestion_keeps_alternatives_and_denials(shop: World) -> None:
    for text in ("glittering games on Linux or macOS", "glittering games not on Windows"):
        answer = (await shop.call("GET", "/ask", params={"q": text})).json()
        second_body = (await shop.call("GET", "/ask", params={"q": answer["suggestions"][0]})).json()

        assert second_body["query"] == answer["query"]


@pytest.mark.parametrize(
    "text", ["Is Quill glittering?", "How many glittering games run on Linux?", "Which games cost less than 5 euros?"]
)
async def test_yes_no_and_numbers_are_refused_where_a_word_was_not_used(shop: World, text: str) -> None:
    answer = (await shop.call("GET", "/ask", params={"q": text})).json()

    assert (answer["status"], answer["confidence"], answer["sources"], answer["query"]) == ("refused", 0, [], None)


async def test_a_filter_in_key_value_form_is_a_question_with_that_meaning(shop: World) -> None:
    text = "kind=game|tool; platform=linux&macos; platform!=web; channel=stable; since=2025-01-01; "
    text += "order=newest; limit=2"
    answer = (await shop.call("GET", "/ask", params={"q": text})).json()

    assert answer["query"] == {
        "where": {
            "kind": {"any": ["game", "tool"]},
            "platform": {"all": ["linux", "macos"], "not": ["web"]},
        },
        "channel": {"any": ["stable"]},
        "since": "2025-01-01T00:00:00Z",
        "order": "newest",
        "limit": 2,
    }


async def test_which_of_two_products_comes_first_is_answered_where_neither_fits(shop: World) -> None:
    text = "product=quill|hammer; kind=game; order=newest; answer=exists"
    answer = await shop.call("GET", "/ask", params={"q": text})

    assert (answer.status_code, answer.json()["answer"]) == (200, "No. None of them fits.")


async def test_a_follow_up_changes_the_question_before_it(shop: World) -> None:
    earlier_question = "Which games run on Windows?"
    post_answer = await shop.call("POST", "/ask", json={"query": "And on macOS?", "prev": [earlier_question]})
    get_answer = await shop.call("GET", "/ask", params={"q": "And on macOS?", "prev": earlier_question})
    for answer in (post_answer, get_answer):
        assert answer.json()["query"] == {"where": {"kind": {"any": ["game"]}, "platform": {"any": ["macos"]}}}

    standalone = {
        "query": "And on macOS?",
        "decontextualized_query": "Which tools run on macOS?",
        "prev": ["Which games?"],
    }
    assert (await shop.call("POST", "/ask", json=standalone)).json()["query"]["where"]["kind"] == {"any": ["tool"]}
    nested = {"query": {"text": "And on macOS?"}, "context": {"prev": ["Which games run on Windows?"]}}
    assert len((await shop.call("POST", f"{ROOT_URL}/ask", json=nested)).json()["results"]) == 2


async def test_a_question_of_two_thousand_characters_is_answered(shop: World) -> None:
    answer = await shop.call("POST", "/ask", json={"query": "which games " + "x " * 994})

    assert answer.status_code == 200
    assert answer.json()["sources"] == []


async def test_a_stream_has_start_sources_deltas_and_the_whole_answer(shop: World) -> None:
    whole_body = (await shop.call("POST", "/ask", json={"query": QUESTION, "query_id": "q1"})).json()
    answer = await shop.call("POST", "/ask", params={"stream": "true"}, json={"query": QUESTION, "query_id": "q1"})

    sse_events = events(answer.text)
    assert answer.headers["content-type"] == "text/event-stream"
    assert [name for name, _ in sse_events][:4] == ["start", "source", "source", "source"]
    assert sse_events[0] == ("start", {"id": "q1"})
    assert [data for name, data in sse_events if name == "source"] == whole_body["sources"]
    assert "".join(data["text"] for name, data in sse_events if name == "delta") == whole_body["answer"]
    assert sse_events[-1] == ("done", whole_body)


async def test_a_stream_cannot_be_resumed(shop: World) -> None:
    headers = {"Last-Event-ID": "7"}

    assert (await shop.call("GET", "/ask", params={"q": "x", "stream": "true"}, headers=headers)).status_code == 204
    assert (await shop.call("GET", "/ask", params={"q": "x"}, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "name", "member"),
    [
        ("/ask", {"query": QUESTION, "streaming": True}, "", {"message_type": "error", "status": 503}),
        (f"{ROOT_URL}/ask", {"query": {"text": QUESTION}, "prefer": {"streaming": True}}, "complete", {}),
        ("/ask?stream=true", {"query": QUESTION}, "error", {"code": "unavailable", "status": 503}),
    ],
)
async def test_a_refusal_after_the_head_is_the_last_event(
    shop: World, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], name: str, member: dict[str, Any]
) -> None:
    async def refuse(*_: object, **__: object) -> QuestionAnswer:
        raise Unavailable("the database is busy")

    monkeypatch.setattr(answers, "answer", refuse)
    answer = await shop.call("POST", path, json=body)

    sse_events = events(answer.text)
    assert (answer.status_code, len(sse_events), sse_events[-1][0]) == (200, 2, name)
    assert member.items() <= sse_events[-1][1].items()
    assert "the database is busy" in json.dumps(sse_events[-1][1])


async def test_products_are_compared_for_any_fields_sent(shop: World) -> None:
    text = "product=quill|hammer; answer=compare; fields=notes"
    answer = (await shop.call("GET", "/ask", params={"q": text})).json()

    assert answer["status"] == "answered"
    assert [source["product"] for source in answer["sources"]] == ["hammer", "quill"]


async def test_relative_times_are_computed_from_the_clock(shop: World) -> None:
    with clock.fixed(NOW):
        answer = await shop.call("GET", "/ask", params={"q": "What was released last week?"})

    assert {source["release"] for source in answer.json()["sources"]} == {"1.1.0-nightly.3", "4.1.0", "1.0.0"}


async def test_a_license_is_the_same_in_capitals(world: World) -> None:
    await world.product("north", "closed", title="Closed", license="proprietary", status="public")
    await world.product("north", "open", title="Open", license="MIT", status="public")

    for question, slug in (("Which products are open source?", "open"), ("closed source products", "closed")):
        answer = (await world.call("GET", "/ask", params={"q": question})).json()
        assert [source["product"] for source in answer["sources"]] == [slug], answer
