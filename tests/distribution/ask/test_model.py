"""A model that helps: what it says becomes a typed query or another wording, and never anything else."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest

from countersign.distribution.ask import asking
from countersign.distribution.ask.answers import Answered
from countersign.distribution.ask.query import Check, Count, Products
from countersign.distribution.ask.rewording import says_the_same
from countersign.distribution.ask.told import Every, Named, OfKind, On
from countersign.distribution.context import Store
from tests.distribution.ask.shelf import NOW

STRANGE = "Penguin-friendly amusements?"


@dataclass
class Stub:
    """A model that answers as it is told to; `seen` are the requests it got."""

    says: Callable[[dict[str, Any]], str | bytes] = lambda body: "{}"
    status: int = 200
    delay_s: float = 0
    url: str = ""
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=lambda: list[tuple[str, dict[str, Any]]]())
    serving: set[asyncio.Task[None]] = field(default_factory=lambda: set[asyncio.Task[None]]())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        with closing(writer):
            await self._answer(reader, writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(
            next(line for line in head.lower().split("\r\n") if line.startswith("content-length")).split(":")[1]
        )
        body = json.loads(await reader.readexactly(length))
        self.seen.append((head, body))
        await asyncio.sleep(self.delay_s)
        said = self.says(body)
        if isinstance(said, str):
            said = json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}).encode()
        writer.write(
            b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (self.status, len(said), said)
        )
        await writer.drain()


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    """A model on this machine."""
    made = Stub()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield made
    for task in made.serving:
        task.cancel()
    await asyncio.gather(*made.serving, return_exceptions=True)


Asking = Callable[..., Awaitable[Answered]]


@pytest.fixture
def ask(shelf: Store, stub: Stub) -> Asking:
    """Asks the shelf with the model's help."""
    settings = replace(
        shelf.settings, ask_model_url=stub.url, ask_model="tiny", ask_model_key="model-key", ask_model_seconds=1
    )
    helped = replace(shelf, settings=settings)

    async def asked(question: str, *, is_reworded: bool = False) -> Answered:
        return await asking.answer(helped, question, NOW, is_reworded=is_reworded)

    return asked


def saying(value: object) -> Callable[[dict[str, Any]], str]:
    """Says the value as JSON, whatever is asked."""
    return lambda body: msgspec.json.encode(value).decode()


async def test_a_question_the_grammar_refuses_is_read_by_the_model(ask: Asking, stub: Stub) -> None:
    stub.says = saying(Products(Every((OfKind("game"), On("linux")))))

    found = await ask(STRANGE)

    assert [slug for (slug,) in found.rows] == ["ember-and-ash", "slow-rivers", "windows-tycoon"]
    assert found.confidence == 0.6
    head, body = stub.seen[0]
    assert "authorization: bearer model-key" in head.lower()
    assert STRANGE in body["messages"][1]["content"]


async def test_a_question_the_grammar_understands_never_reaches_the_model(ask: Asking, stub: Stub) -> None:
    assert (await ask("How many games are there?")).total > 0
    assert not stub.seen


async def test_names_from_the_model_are_looked_up_among_public_products(ask: Asking, stub: Stub) -> None:
    stub.says = saying(Check(("Quil Pro",), On("macos")))
    assert (await ask(STRANGE)).rows == (("quill-pro",),)

    for hidden in ("Hidden Garden", "hidden-garden", "Old Harbour"):
        stub.says = saying(Check((hidden,), On("linux")))
        assert (await ask(STRANGE)).kind == "refused"
        stub.says = saying(Count(Products(Named(hidden))))
        assert (await ask(STRANGE)).kind == "refused"


HOSTILE: list[str | bytes] = [
    "",
    "{}",
    "null",
    "[]",
    "yes",
    "{" * 5_000,
    '{"ask":"products"',
    '{"ask":"sql","statement":"DROP TABLE product"}',
    '{"ask":"products","where":{"is":"sql","value":"1=1"}}',
    '{"ask":"products","limit":-1}',
    '{"ask":"products","x":1}',
    '{"ask":"products","where":{"is":"released","since":"2026-13-45T99:00:00Z"}}',
    '{"ask":"about","product":"quill","aspect":"password"}',
    '{"ask":"check","products":[],"where":7}',
    '{"ask":"products","where":' + '{"is":"not","of":' * 60 + '{"is":"free"}' + "}" * 61,
    '{"ask":"about","product":"' + "a" * 500 + '","aspect":"kind"}',
    b"not json at all",
    b"\xff\xfe",
    b"a" * 100_000,
    b'{"choices":[]}',
    b'{"choices":[{"message":{}}]}',
]


async def test_hostile_answers_of_the_model_are_as_if_there_were_none(ask: Asking, stub: Stub) -> None:
    for said in HOSTILE:
        stub.says = lambda body, said=said: said

        found = await ask(STRANGE)

        assert (found.kind, found.rows) == ("refused", ()), said


async def test_a_failing_or_slow_model_leaves_the_rules_answer(ask: Asking, stub: Stub) -> None:
    stub.says, stub.status = saying(Products()), 500
    assert (await ask(STRANGE)).kind == "refused"

    stub.status, stub.delay_s = 200, 30
    began_s = asyncio.get_running_loop().time()
    assert (await ask(STRANGE)).kind == "refused"
    assert asyncio.get_running_loop().time() - began_s < 5


async def test_no_model_at_the_address_is_no_fault(shelf: Store) -> None:
    alone = replace(shelf, settings=replace(shelf.settings, ask_model_url="http://127.0.0.1:9/v1"))

    assert (await asking.answer(alone, STRANGE, NOW)).kind == "refused"


async def test_a_wording_that_keeps_every_fact_is_taken(ask: Asking, stub: Stub) -> None:
    stub.says = lambda body: "Yes: you can use Quill on macOS. It runs on macOS and iOS."

    assert (await ask("Does Quill run on macOS?", is_reworded=True)).text.startswith("Yes: you can use Quill")


async def test_a_wording_with_other_facts_is_not(ask: Asking, stub: Stub) -> None:
    honest = (await ask("Does Quill run on macOS?")).text
    for said in ("Yes: Quill runs on macOS and Windows.", "No: Quill does not run on macOS.", "", "Yes."):
        stub.says = lambda body, said=said: said

        assert (await ask("Does Quill run on macOS?", is_reworded=True)).text == honest


TRUE = "The latest version of Quill is 4.1.0 (stable), published on 2026-08-11."


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        (TRUE, "Published on 2026-08-11, the latest version of Quill is 4.1.0 (stable).", True),
        (TRUE, "The latest version of Quill is 4.2.0 (stable), published on 2026-08-11.", False),
        (TRUE, "The latest version of Quill Pro is 4.1.0 (stable), published on 2026-08-11.", False),
        (TRUE, "The latest version of Quill is 4.1.0 (stable), published on 2026-08-12.", False),
        (
            TRUE,
            "The latest version of Quill is 4.1.0 (stable), published on 2026-08-11, see http://evil.example",
            False,
        ),
        (TRUE, "The latest version of Quill is not 4.1.0 (stable), published on 2026-08-11.", False),
        (TRUE, "The latest version of Quill is 4.1.0 (stable).", False),
        ("Yes: Quill runs on macOS.", "No: Quill runs on macOS.", False),
        ("There are 3 games.", "There are three games.", False),
        ("There are 3 games.", "You can choose among 3 games.", True),
    ],
)
def test_a_wording_is_held_against_the_facts(text: str, other: str, same: bool) -> None:
    assert says_the_same(text, other) is same
