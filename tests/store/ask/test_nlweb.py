"""The requests and responses of NLWeb clients at /ask of the site's root."""

from tests.store.ask.shelf import QUESTION, TITLES, events
from tests.store.conftest import ROOT_URL
from tests.store.world import World


async def test_a_nested_question_has_the_meta_form(shop: World) -> None:
    question = {"query": {"text": QUESTION, "site": "x"}, "meta": {"version": "1"}}
    answer = await shop.call("POST", f"{ROOT_URL}/ask", json=question)

    body = answer.json()
    assert body["_meta"] == {"response_type": "answer", "version": "0.54"}
    assert [each["name"] for each in body["results"]] == [*TITLES]
    assert body["results"][0]["grounding"]["source_urls"]


async def test_an_unanswerable_question_is_a_failure_or_an_elicitation(shop: World) -> None:
    failed = await shop.call("POST", f"{ROOT_URL}/ask", json={"query": {"text": "Which game is best?"}})
    elicitation = await shop.call("POST", f"{ROOT_URL}/ask", json={"query": {"text": "What is Slow?"}})

    assert failed.json()["error"]["code"] == "NO_RESULTS"
    assert failed.json()["_meta"]["response_type"] == "failure"
    assert elicitation.json()["_meta"]["response_type"] == "elicitation"
    assert {"Slow Rivers", "Slow Rivers: Maps"} <= {*elicitation.json()["elicitation"]["questions"][0]["options"]}


async def test_nested_streams_have_named_fragments(shop: World) -> None:
    body = {"query": {"text": QUESTION}, "prefer": {"streaming": True, "mode": "list"}}
    sse_events = events((await shop.call("POST", f"{ROOT_URL}/ask", json=body)).text)

    assert [name for name, _ in sse_events] == ["start", "result", "complete"]
    assert [data["message_type"] for _, data in sse_events] == ["api_version", "result_batch", "complete"]
    assert sse_events[-1][1]["_meta"]["response_type"] == "answer"


async def test_flat_streams_have_unnamed_messages(shop: World) -> None:
    parameters = {"query": QUESTION, "streaming": "true", "site": "all", "prev": "", "query_id": "q9"}
    sse_events = events((await shop.call("GET", f"{ROOT_URL}/ask", params=parameters)).text)

    assert {name for name, _ in sse_events} == {""}
    assert [data["message_type"] for _, data in sse_events] == ["api_version", "result_batch", "summary", "complete"]
    assert {data["query_id"] for _, data in sse_events} == {"q9"}


async def test_generation_without_a_model_is_not_supported(shop: World) -> None:
    flat = await shop.call("GET", f"{ROOT_URL}/ask", params={"query": QUESTION, "mode": "generate"})
    body = {"query": {"text": QUESTION}, "prefer": {"mode": "generate"}}
    nested = await shop.call("POST", f"{ROOT_URL}/ask", json=body)

    assert (flat.status_code, flat.json()["code"]) == (400, "not_supported")
    assert nested.json()["error"]["code"] == "NOT_SUPPORTED"
