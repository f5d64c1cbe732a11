"""Asking both worlds the same, and holding their answers against each other byte by byte."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import httpx

from countersign.kernel import clock, ids
from tests.records.worlds.asking import Asked, Requests
from tests.records.worlds.building import STARTED, World


class Differs(AssertionError):
    """The worlds answer differently: the caller learned something it may not see."""


class Renaming:
    """One consistent renaming of the tokens of world a to those of world b, kept over a whole run."""

    def __init__(self, labels: Sequence[str]) -> None:
        names = "|".join(sorted(labels, key=len, reverse=True))
        self._token = re.compile(rf"(?<![A-Za-z0-9_])(?:{names})_(?:0|[1-9][0-9]{{0,14}})(?![A-Za-z0-9_])")
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self.pairs: list[tuple[str, str]] = []

    def match(self, first: str, second: str) -> bool:
        """Whether the texts are the same up to the renaming; new tokens extend it."""
        mine, theirs = self._token.findall(first), self._token.findall(second)
        if len(mine) != len(theirs) or self._token.split(first) != self._token.split(second):
            return False
        return all(self._is_pair(a, b) for a, b in zip(mine, theirs, strict=True))

    def _is_pair(self, first: str, second: str) -> bool:
        if first.partition("_")[0] != second.partition("_")[0]:
            return False
        if first == second and first not in self._there:
            # What the caller wrote itself comes back in errors as it was sent.
            return True
        if first not in self._there and second not in self._back:
            self._there[first], self._back[second] = second, first
            self.pairs.append((first, second))
        return self._there.get(first) == second and self._back.get(second) == first


async def _ask(world: World, who: str, asked: Asked, tokens: list[str]) -> httpx.Response:
    headers = {"Authorization": f"Bearer {world.tokens[who]}", "Accept": asked.accept}
    if asked.body is None:
        return await world.http.get(asked.path, headers=headers)
    headers["Content-Type"] = "application/json"
    return await world.http.post(asked.path, content=asked.content(tokens), headers=headers)


async def compare(worlds: tuple[World, World], who: str, requests: Requests, count: int) -> int:
    """Ask both worlds `count` times, one second apart; how many were carried out or proposed.

    Raises:
        Differs: an answer is another one in the other world, beyond the renaming.
    """
    first, second = worlds
    with clock.fixed(clock.later(STARTED, seconds=30)):
        await _look(first, who, requests)
    renaming = Renaming(sorted(first.service.records.registry.labels))
    carried_out = 0
    for number in range(count):
        asked = requests.next()
        with clock.fixed(clock.later(STARTED, seconds=60 + number)):
            answers: list[httpx.Response] = []
            for place, world in enumerate(worlds):
                with ids.seeded(f"request {number}"):
                    answers.append(await _ask(world, who, asked, [pair[place] for pair in renaming.pairs]))
        _hold(asked, renaming, *answers)
        carried_out += answers[0].status_code < 300
        requests.known.labels = [pair[0].partition("_")[0] for pair in renaming.pairs]
        _learn(requests, asked, answers[0])
    assert first is not second
    return carried_out


async def _look(world: World, who: str, requests: Requests) -> None:
    """What the caller sees, so that most requests are sensible ones."""
    headers = {"Authorization": f"Bearer {world.tokens[who]}"}
    meta = (await world.http.get("/api/meta", headers=headers)).json()
    requests.known.fields = {model["name"]: [each["name"] for each in model["fields"]] for model in meta["models"]}
    for name in requests.known.fields.keys() & requests.known.ids.keys():
        answer = await world.http.post(f"/api/{name}/list", json={}, headers=headers)
        if answer.status_code == 200:
            requests.known.seen[name] = [each["id"] for each in answer.json()["value"]]


def _hold(asked: Asked, renaming: Renaming, first: httpx.Response, second: httpx.Response) -> None:
    heads = [(each.status_code, sorted(_headers(each))) for each in (first, second)]
    texts = [_canonical(asked, each) for each in (first, second)]
    if not renaming.match(*texts) or heads[0] != heads[1]:
        place = next((n for n, (a, b) in enumerate(_pieces(*texts)) if a != b), 0)
        shown = [" ".join(each.split('"')[max(0, place - 12) : place + 12]) for each in texts]
        raise Differs(f"{asked.path} {asked.body}\na: {heads[0]} … {shown[0]} …\nb: {heads[1]} … {shown[1]} …")


def _canonical(asked: Asked, answer: httpx.Response) -> str:
    """The body. Of audit entries the ids are left out and their order by them: how many chances were taken before
    one was drawn depends on hidden entries, which real chance does not tell."""
    if not asked.path.startswith("/api/audit_entry/") or answer.status_code != 200:
        return answer.text
    body = answer.json()
    value = body["value"]
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
    # Tokens differ in length, and so does what is made from the bytes that hold them; a random number says nothing.
    return [(name, value) for name, value in answer.headers.items() if name not in _OF_BYTES]


_OF_BYTES = {"content-length", "etag", "x-request-id"}


def _learn(requests: Requests, asked: Asked, answer: httpx.Response) -> None:
    if answer.status_code == 202:
        requests.known.plans.append(answer.json()["plan_id"])
    if answer.status_code == 200 and asked.path.endswith("/create"):
        requests.known.ids.setdefault(asked.path.split("/")[2], []).append(answer.json()["value"]["id"])
