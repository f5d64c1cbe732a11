"""Asking both worlds the same, and holding their answers against each other byte by byte."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import httpx

from countersign.kernel import clock, ids
from countersign.kernel.http.response import etag_of
from tests.records.worlds.asking import OTHERS, Asked, Requests
from tests.records.worlds.building import STARTED, World
from tests.records.worlds.carrying import REST, Carrier, Heard

OTHERS_EVERY = 7
"""After how many requests somebody else changes something in world b."""

RETURNING_EVERY = 4
"""After how many requests a value comes, leaves or returns in both worlds, and is looked at."""

MANY_TOKENS = 40
MOST_KINSHIP = 0.75
"""Of 40 pairs at random, one set in a million is so alike."""


class Differs(AssertionError):
    """The worlds answer differently: the caller learned something it may not see."""


@dataclass
class Compared:
    """How often each status was answered, and how many tokens were seen."""

    statuses: Counter[int] = field(default_factory=Counter[int])
    tokens: int = 0

    @property
    def carried_out(self) -> int:
        """How many requests were carried out or proposed."""
        return sum(count for status, count in self.statuses.items() if status < 300)


class Renaming:
    """One consistent renaming of the tokens of world a to those of world b, kept over a whole run."""

    def __init__(self, labels: Sequence[str]) -> None:
        names = "|".join(sorted(labels, key=len, reverse=True))
        # A letter before it may be that of an escaped line end.
        start = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
        self._token = re.compile(rf"{start}(?:{names})_(?:0|[1-9][0-9]{{0,14}})(?![A-Za-z0-9_])")
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self.pairs: list[tuple[str, str]] = []

    def match(self, first: str, second: str, sent: str) -> bool:
        """Whether the texts are the same up to the renaming; new tokens extend it. `sent` is what the caller wrote:
        it may come back as it was, tokens of the other world too."""
        mine, theirs = self._token.findall(first), self._token.findall(second)
        if len(mine) != len(theirs) or self._token.split(first) != self._token.split(second):
            return False
        return all(self._is_pair(a, b, sent) for a, b in zip(mine, theirs, strict=True))

    def _is_pair(self, first: str, second: str, sent: str) -> bool:
        if first.partition("_")[0] != second.partition("_")[0]:
            return False
        if first == second:
            # Tokens are made from chance: what is equal in both worlds was no secret, or is numbered by a counter.
            return first in sent
        if OTHERS in sent and self._there.get(second) == first:
            return True
        if first not in self._there and second not in self._back:
            self._there[first], self._back[second] = second, first
            self.pairs.append((first, second))
        return self._there.get(first) == second and self._back.get(second) == first

    def kinship(self) -> float:
        """How far the numbers of both worlds follow each other, by rank: 1 when whoever knows the order of the ones
        knows that of the others, around 0 when they say nothing (Spearman)."""
        count = len(self.pairs)
        numbers = [[int(pair[place].partition("_")[2]) for pair in self.pairs] for place in (0, 1)]
        ranks = [[sorted(each).index(number) for number in each] for each in numbers]
        return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks, strict=True)) / (count * (count * count - 1))


async def compare(
    worlds: tuple[World, World], who: str, requests: Requests, count: int, carrier: Carrier = REST
) -> Compared:
    """Ask both worlds `count` times, while in world b others go on changing what the caller does not see.

    Raises:
        Differs: an answer is another one in the other world, beyond the renaming.
    """
    first, second = worlds
    assert first is not second
    with clock.fixed(clock.later(STARTED, seconds=30)):
        for world in (second, first):
            # Both, so that whatever is counted per answer stands where it does in the other.
            await _look(world, who, requests)
    requests.known.ids["plan"] += second.plans
    renaming = Renaming(sorted(first.service.records.registry.labels))
    asking = _Asking(worlds, who, requests, carrier, renaming)
    now = clock.later(STARTED, seconds=60)
    for number in range(count):
        asked = requests.next()
        now = clock.later(now, seconds=requests.pause_s())
        with clock.fixed(now):
            if number % OTHERS_EVERY == 0:
                await second.hidden_step(number // OTHERS_EVERY)
            if number % RETURNING_EVERY == 0:
                turn = number // RETURNING_EVERY
                (model, record_id), _ = [await world.returning_step(turn) for world in worlds]
                await asking.ask(Asked(f"/api/{model}/get", {"id": record_id}), f"look {number}")
            await asking.ask(asked, f"request {number}")
    found = asking.found
    found.tokens = len(renaming.pairs)
    if found.tokens >= MANY_TOKENS and abs(renaming.kinship()) > MOST_KINSHIP:
        raise Differs(f"the numbers of {found.tokens} tokens follow each other: {renaming.kinship():.2f}")
    return found


@dataclass
class _Asking:
    """Asks both worlds, and compares their answers."""

    worlds: tuple[World, World]
    who: str
    requests: Requests
    carrier: Carrier
    renaming: Renaming
    found: Compared = field(default_factory=Compared)

    async def ask(self, asked: Asked, seed: str) -> None:
        """One request; by the seed are made the ids of what it makes.

        Raises:
            Differs: the answers differ.
        """
        answers: list[httpx.Response] = []
        for place, world in enumerate(self.worlds):
            tokens = [(pair[place], pair[1 - place]) for pair in self.renaming.pairs]
            with ids.seeded(seed):
                answers.append(await self.carrier.ask(world, self.who, asked, tokens))
        heard = [self.carrier.heard(asked, each) for each in answers]
        _hold(asked, self.renaming, answers, heard)
        self.found.statuses[heard[0].status] += 1
        self.requests.known.labels = [pair[0].partition("_")[0] for pair in self.renaming.pairs]
        _learn(self.requests, asked, answers[0], heard[0])


async def _look(world: World, who: str, requests: Requests) -> None:
    """What the caller sees, so that most requests are sensible ones."""
    headers = {"Authorization": f"Bearer {world.tokens[who]}"}
    meta = (await world.http.get("/api/meta", headers=headers)).json()
    requests.known.fields = {model["name"]: [each["name"] for each in model["fields"]] for model in meta["models"]}
    for name in requests.known.fields.keys() & requests.known.ids.keys():
        answer = await world.http.post(f"/api/{name}/list", json={}, headers=headers)
        if answer.status_code == 200:
            requests.known.seen[name] = [each["id"] for each in answer.json()["value"]]


def _hold(asked: Asked, renaming: Renaming, answers: Sequence[httpx.Response], heard: Sequence[Heard]) -> None:
    heads = [(each.status_code, sorted(_headers(each))) for each in answers]
    texts = [_canonical(asked, *each) for each in zip(answers, heard, strict=True)]
    if heads[0] != heads[1] or not renaming.match(texts[0], texts[1], asked.sent()):
        place = next((n for n, (a, b) in enumerate(_pieces(*texts)) if a != b), 0)
        shown = [" ".join(each.split('"')[max(0, place - 12) : place + 12]) for each in texts]
        raise Differs(f"{asked.path} {asked.sent()}\na: {heads[0]} … {shown[0]} …\nb: {heads[1]} … {shown[1]} …")


def _canonical(asked: Asked, answer: httpx.Response, heard: Heard) -> str:
    """The body. Of audit entries the ids are left out and their order by them: how many chances were taken before
    one was drawn depends on hidden entries, which real chance does not tell."""
    if not asked.path.startswith("/api/audit_entry/") or heard.status != 200:
        return answer.text
    body, value = heard.body, heard.body["value"]
    rows = [json.dumps({**each, "id": ""}) for each in (value if isinstance(value, list) else value["rows"])]
    total = [] if isinstance(value, list) else [value["total"]]
    return json.dumps([body["denied"], total, sorted(rows, key=_without_numbers)])


def _without_numbers(text: str) -> str:
    return re.sub(r"(?<=[A-Z]_)\d+", "", text)


def _pieces(first: str, second: str) -> Iterator[tuple[str, str]]:
    """Both texts cut at their quotes, the numbers of tokens left out."""
    bare = [_without_numbers(each).split('"') for each in (first, second)]
    return zip_longest(*bare, fillvalue="")


def _headers(answer: httpx.Response) -> list[tuple[str, str]]:
    """All of them. Tokens differ in length, and so does what is made from the bytes that hold them: of these headers
    it counts whether they say what the bytes are."""
    made = {"content-length": str(len(answer.content)), "etag": etag_of(answer.content)}
    return [(name, "true" if made.get(name) == value else value) for name, value in answer.headers.items()]


def _learn(requests: Requests, asked: Asked, answer: httpx.Response, heard: Heard) -> None:
    if answer.headers.get("etag") and answer.status_code == 200:
        requests.known.etags[asked.path] = answer.headers["etag"]
    if heard.status == 202:
        requests.known.plans.append(heard.body["plan_id"])
    if heard.status == 200 and asked.path.endswith("/create"):
        requests.known.ids.setdefault(asked.path.split("/")[2], []).append(heard.body["value"]["id"])
