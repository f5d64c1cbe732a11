"""Sends the same requests to both worlds, and compares their responses byte by byte."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import httpx

from countersign.kernel import clock, ids
from countersign.kernel.http.response import etag_of
from tests.records.worlds.asking import OTHERS, GeneratedRequest, RequestSequence
from tests.records.worlds.building import STARTED, OpenWorld
from tests.records.worlds.transports import REST, ResponseMeaning, Transport

OTHERS_EVERY = 7
"""The number of requests after which another caller changes something in world b."""

RESTORED_FIELD_EVERY = 4
"""The number of requests after which a value is added, removed or restored in both worlds, and read."""

MANY_TOKENS = 40
MOST_KINSHIP = 0.75
"""The maximum correlation. Among random sets of 40 pairs, one set in a million has a higher one."""


class ResponsesDiffer(AssertionError):
    """The responses of the worlds differ, so the caller has learned something that it may not see."""


@dataclass
class ComparisonCounts:
    """How often each status was returned, and how many tokens were seen."""

    statuses: Counter[int] = field(default_factory=Counter[int])
    tokens: int = 0

    @property
    def carried_out(self) -> int:
        """Return the number of requests that were executed or proposed."""
        return sum(count for status, count in self.statuses.items() if status < 300)


class TokenRenaming:
    """A consistent renaming of the tokens of world a to the tokens of world b. It is kept for a whole run."""

    def __init__(self, labels: Sequence[str]) -> None:
        names = "|".join(sorted(labels, key=len, reverse=True))
        # A letter before a token may belong to an escaped line end.
        start = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
        self._token = re.compile(rf"{start}(?:{names})_(?:0|[1-9][0-9]{{0,14}})(?![A-Za-z0-9_])")
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self.pairs: list[tuple[str, str]] = []

    def match(self, first: str, second: str, sent: str) -> bool:
        """Return whether the texts are equal up to the renaming. New tokens extend the renaming. `sent` is the text of
        the caller, which may be returned unchanged, including tokens of the other world."""
        mine, theirs = self._token.findall(first), self._token.findall(second)
        if len(mine) != len(theirs) or self._token.split(first) != self._token.split(second):
            return False
        return all(self._is_pair(a, b, sent) for a, b in zip(mine, theirs, strict=True))

    def _is_pair(self, first: str, second: str, sent: str) -> bool:
        if first.partition("_")[0] != second.partition("_")[0]:
            return False
        if first == second:
            # Tokens are random. If a token is equal in both worlds, its value was not secret, or its number comes from
            # a counter.
            return first in sent
        if OTHERS in sent and self._there.get(second) == first:
            return True
        if first not in self._there and second not in self._back:
            self._there[first], self._back[second] = second, first
            self.pairs.append((first, second))
        return self._there.get(first) == second and self._back.get(second) == first

    def kinship(self) -> float:
        """Return the rank correlation (Spearman) of the token numbers of both worlds. It is 1 if the order of the
        numbers of one world determines the order in the other, and about 0 if it says nothing."""
        count = len(self.pairs)
        numbers = [[int(pair[place].partition("_")[2]) for pair in self.pairs] for place in (0, 1)]
        ranks = [[sorted(group).index(number) for number in group] for group in numbers]
        return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks, strict=True)) / (count * (count * count - 1))


async def compare(
    worlds: tuple[OpenWorld, OpenWorld],
    who: str,
    requests: RequestSequence,
    count: int,
    transport: Transport = REST,
) -> ComparisonCounts:
    """Send `count` requests to both worlds, while others change hidden data in world b.

    Raises:
        ResponsesDiffer: a response differs by more than the renaming.
    """
    first, second = worlds
    assert first is not second
    with clock.fixed(clock.later(STARTED, seconds=30)):
        for world in (second, first):
            # Read both responses, so that counters of responses are equal in both worlds.
            await look(world, who, requests)
    requests.known.ids["plan"] += second.plans
    renaming = TokenRenaming(sorted(first.service.records.registry.labels))
    asking = WorldComparison(worlds, who, requests, transport, renaming)
    now = clock.later(STARTED, seconds=60)
    for number in range(count):
        asked = requests.next()
        now = clock.later(now, seconds=requests.pause_s())
        with clock.fixed(now):
            if number % OTHERS_EVERY == 0:
                await second.hidden_step(number // OTHERS_EVERY)
            if number % RESTORED_FIELD_EVERY == 0:
                turn = number // RESTORED_FIELD_EVERY
                (model, record_id), _ = [await world.change_restored_field(turn) for world in worlds]
                await asking.ask(GeneratedRequest(f"/api/{model}/get", {"id": record_id}), f"look {number}")
            await asking.ask(asked, f"request {number}")
    counts = asking.counts
    counts.tokens = len(renaming.pairs)
    if counts.tokens >= MANY_TOKENS and abs(renaming.kinship()) > MOST_KINSHIP:
        raise ResponsesDiffer(f"the numbers of {counts.tokens} tokens follow each other: {renaming.kinship():.2f}")
    return counts


Canonical = Callable[[GeneratedRequest, Sequence[httpx.Response], Sequence[ResponseMeaning]], list[str]]
"""Returns the bodies of the responses of both worlds in a form that can be compared."""


@dataclass
class WorldComparison:
    """Sends requests to both worlds and compares the responses."""

    worlds: tuple[OpenWorld, OpenWorld]
    who: str
    requests: RequestSequence
    transport: Transport
    renaming: TokenRenaming
    counts: ComparisonCounts = field(default_factory=ComparisonCounts)
    canonical: Canonical = field(default=lambda *args: _canonical_texts(*args))

    async def ask(self, asked: GeneratedRequest, seed: str) -> None:
        """Send one request. The seed determines the ids of the records that it creates.

        Raises:
            ResponsesDiffer: the responses differ.
        """
        answers: list[httpx.Response] = []
        for place, world in enumerate(self.worlds):
            tokens = [(pair[place], pair[1 - place]) for pair in self.renaming.pairs]
            with ids.seeded(seed):
                answers.append(await self.transport.ask(world, self.who, asked, tokens))
        meanings = [self.transport.meaning_of(asked, answer) for answer in answers]
        _hold(asked, self.renaming, answers, self.canonical(asked, answers, meanings))
        self.counts.statuses[meanings[0].status] += 1
        self.requests.known.labels = [pair[0].partition("_")[0] for pair in self.renaming.pairs]
        _learn(self.requests, asked, answers[0], meanings[0])


async def look(world: OpenWorld, who: str, requests: RequestSequence) -> None:
    """Read what the caller sees, so that most requests are meaningful."""
    headers = {"Authorization": f"Bearer {world.tokens[who]}"}
    meta = (await world.http.get("/api/meta", headers=headers)).json()
    requests.known.fields = {model["name"]: [field["name"] for field in model["fields"]] for model in meta["models"]}
    for name in requests.known.fields.keys() & requests.known.ids.keys():
        answer = await world.http.post(f"/api/{name}/list", json={}, headers=headers)
        if answer.status_code == 200:
            requests.known.seen[name] = [record["id"] for record in answer.json()["value"]]


def _hold(
    asked: GeneratedRequest,
    renaming: TokenRenaming,
    answers: Sequence[httpx.Response],
    texts: Sequence[str],
) -> None:
    heads = [(answer.status_code, sorted(_headers(answer))) for answer in answers]
    if heads[0] != heads[1] or not renaming.match(texts[0], texts[1], asked.body_text()):
        place = next((n for n, (a, b) in enumerate(_pieces(texts[0], texts[1])) if a != b), 0)
        shown = [" ".join(text.split('"')[max(0, place - 12) : place + 12]) for text in texts]
        raise ResponsesDiffer(
            f"{asked.path} {asked.body_text()}\na: {heads[0]} … {shown[0]} …\nb: {heads[1]} … {shown[1]} …"
        )


def _canonical_texts(
    asked: GeneratedRequest, answers: Sequence[httpx.Response], meanings: Sequence[ResponseMeaning]
) -> list[str]:
    return [_canonical(asked, *pair) for pair in zip(answers, meanings, strict=True)]


def _canonical(asked: GeneratedRequest, answer: httpx.Response, meaning: ResponseMeaning) -> str:
    """Return the body in a form that can be compared. For audit entries, ids and the order by id are removed: they
    depend on how many random numbers were drawn before, which hidden entries change. With real random numbers, this
    reveals nothing."""
    if not asked.path.startswith("/api/audit_entry/") or meaning.status != 200:
        return answer.text
    body, value = meaning.body, meaning.body["value"]
    rows = [json.dumps({**row, "id": ""}) for row in (value if isinstance(value, list) else value["rows"])]
    total = [] if isinstance(value, list) else [value["total"]]
    return json.dumps([body["denied"], total, sorted(rows, key=_without_numbers)])


def _without_numbers(text: str) -> str:
    return re.sub(r"(?<=[A-Z]_)\d+", "", text)


def _pieces(first: str, second: str) -> Iterator[tuple[str, str]]:
    """Split both texts at their quotation marks, without the numbers of tokens."""
    bare = [_without_numbers(text).split('"') for text in (first, second)]
    return zip_longest(*bare, fillvalue="")


def _headers(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return all headers. Headers that depend on the length or the bytes of tokens are replaced by whether they match
    the body."""
    made = {"content-length": str(len(answer.content)), "etag": etag_of(answer.content)}
    return [(name, "true" if made.get(name) == value else value) for name, value in answer.headers.items()]


def _learn(
    requests: RequestSequence, asked: GeneratedRequest, answer: httpx.Response, meaning: ResponseMeaning
) -> None:
    if answer.headers.get("etag") and answer.status_code == 200:
        requests.known.etags[asked.path] = answer.headers["etag"]
    if meaning.status == 202:
        requests.known.plans.append(meaning.body["plan_id"])
    if meaning.status == 200 and asked.path.endswith("/create"):
        requests.known.ids.setdefault(asked.path.split("/")[2], []).append(meaning.body["value"]["id"])
