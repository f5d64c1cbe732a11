"""A question read: the filter it means, and what of it was not used."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from countersign.distribution.ask2 import names
from countersign.distribution.ask2.binding import AUXILIARIES, Binding
from countersign.distribution.ask2.dates import Range
from countersign.distribution.ask2.filter import Filter, Values, Where, is_onward, merged
from countersign.distribution.ask2.lexicon import Token, tokens_of
from countersign.distribution.ask2.recognition import Corrected, Item, Recognition, recognize
from countersign.distribution.catalog.words import words as terms_of
from countersign.kernel.database.port import Database

MAX_PLURAL = 10
"""How many of "the newest games" are meant."""
MAX_NOTES = 50
_POLITE = tuple(
    tuple(phrase.split())
    for phrase in (
        "is it possible", "can you", "could you", "would you", "will you", "do you know", "do you happen", "can i see",
        "could i see", "may i", "is there a list", "are you able",
    )
)  # fmt: skip
"""How a request is dressed as a question."""
_EACH = frozenset(["every", "each", "all"])
_WHOLE = _EACH | {"whole", "full", "entire", "complete"}
_OTHERS = frozenset(["else", "other", "others", "besides", "also"])
_QUESTION_WORDS = frozenset(["who", "what", "which", "when", "who's"])
_PLURAL_CHANNELS = frozenset(["betas", "nightlies", "alphas"])
_COUNTED_FIELDS = frozenset(["platforms", "channels", "tags"])


@dataclass(slots=True)
class Reading:
    """What was understood. `unused` are the words that are nothing in the filter, `beyond` what no catalog holds,
    `guards` words that change the meaning, `unknown` the name of something that the catalog does not have."""

    filter: Filter
    unused: list[str] = field(default_factory=list[str])
    guards: list[str] = field(default_factory=list[str])
    beyond: list[str] = field(default_factory=list[str])
    unknown: str = ""
    corrected: list[Corrected] = field(default_factory=list[Corrected])


async def read(database: Database, question: str, now: datetime, base: Filter | None = None) -> Reading:
    """The question as of now; `base` is what the question before it meant."""
    tokens = tokens_of(question)
    recognition = await recognize(database, question, tokens, now)
    binding = Binding(tokens, recognition.items)
    slots = {item.slot for item in recognition.items}
    if base is None or not is_onward(binding.words, slots):
        return await _Builder(database, tokens, binding, recognition).reading()
    if not binding.of("product"):
        binding.values += [Item("product", slug, 0, 0) for slug in base.where.product.any]
    binding.guards = [guard for guard in binding.guards if guard not in ("instead", "next")]
    recognition.unused = [word for word in recognition.unused if word != "else"]
    reading = await _Builder(database, tokens, binding, recognition).reading()
    reading.filter = merged(base, reading.filter, binding.words)
    return reading


class _Builder:
    """Decides what is looked for and how it is answered."""

    def __init__(
        self, database: Database, tokens: Sequence[Token], binding: Binding, recognition: Recognition
    ) -> None:
        self._database = database
        self._tokens = tokens
        self._binding = binding
        self._recognition = recognition
        self._words = {*binding.words}
        self._where = binding.where()
        self._products = binding.of("product")
        self._fields = list(dict.fromkeys(binding.fields))
        self._kinds = [item.start for item in binding.of("kind")]
        self._releases = [item for item in binding.nouns if item.value == "releases"]
        self._members: dict[str, Any] = {}
        self._first = self._first_word()

    async def reading(self) -> Reading:
        """The filter, and what was not used."""
        self._nouns()
        self._times()
        self._find()
        await self._of_publisher()
        self._order()
        self._answer()
        self._in_notes()
        self._limit()
        read, binding = self._recognition, self._binding
        members = self._members | {"where": self._where}
        return Reading(
            Filter(**members), read.unused, binding.guards, binding.beyond, read.unknown, read.corrected
        )

    def _first_word(self) -> str:
        words = self._binding.words[self._binding.sentence.start :]
        if any(tuple(words[: len(phrase)]) == phrase for phrase in _POLITE):
            return ""
        return words[0] if words else ""

    @property
    def _asks_whether(self) -> bool:
        plain = [token.word for token in self._tokens if not token.is_mark]
        return self._first in AUXILIARIES or self._binding.is_tag_question or plain[-2:] == ["or", "not"]

    def _nouns(self) -> None:
        """What the nouns of the question say beside what is looked for."""
        binding = self._binding
        if binding.denied_releases and not binding.nouns and self._products:
            binding.nouns = self._releases = binding.denied_releases
        if self._products and any(noun.value == "publishers" for noun in binding.nouns):
            self._fields.append("org")
            binding.nouns = [noun for noun in binding.nouns if noun.value != "publishers"]
        if binding.when == "last" and not binding.times:
            binding.when = "any"
            binding.orders.append(Item("order", "newest", 0, 0))
        binding.nouns = [noun for noun in binding.nouns if noun.value != "any"]

    def _times(self) -> None:
        binding = self._binding
        channel = self._where.channel
        if binding.times:
            span = self._span()
            if span is None:
                binding.guards.append("several times")
                return
            self._members |= {"since": _moment(span.since), "until": _moment(span.until), "when": binding.when or "any"}
        elif binding.when == "none" and (channel.any or channel.all):
            self._where = replace(self._where, channel=Values(none=(*channel.any, *channel.all, *channel.none)))
        elif binding.when == "none":
            self._members["when"] = "none"

    def _span(self) -> Range | None:
        """The times as one range; neighbours joined by "or" are both in it. None where there are several apart."""
        ranges = [item.value for item in self._binding.times]
        closed = [item for item in self._binding.times if None not in item.value]
        if len(closed) > 1:
            between = self._binding.words[closed[0].end : closed[1].start]
            if len(closed) > 2 or "or" not in between:
                return None
            return Range(min(each.since for each in ranges), max(each.until for each in ranges))
        since = [each.since for each in ranges if each.since is not None]
        until = [each.until for each in ranges if each.until is not None]
        return Range(max(since, default=None), min(until, default=None))

    def _find(self) -> None:
        binding = self._binding
        find = binding.nouns[0].value if binding.nouns else "products"
        if "org" in self._fields and not self._products:
            find = "publishers"
        if find == "releases":
            noun = binding.nouns[0].start
            if any(binding.sentence.start <= kind < noun - 1 for kind in self._kinds):
                find = "products"
        if not binding.nouns and not self._kinds:
            is_dated = binding.times and binding.when in ("", "any") and self._first not in ("who", "whose")
            if is_dated or self._is_plural_channel() or self._is_extreme_channel():
                find = "releases"
            if {"play", "playable"} & self._words:
                self._where = replace(self._where, kind=Values(any=("game",)))
        self._members["find"] = find

    def _is_plural_channel(self) -> bool:
        return any(self._binding.words[item.start] in _PLURAL_CHANNELS for item in self._binding.of("channel"))

    def _is_extreme_channel(self) -> bool:
        """Whether "the newest beta" is asked for."""
        orders = self._binding.orders
        return bool(orders) and any(item.start == orders[-1].end for item in self._binding.of("channel"))

    def _order(self) -> None:
        binding = self._binding
        if binding.limit is not None:
            self._members["limit"] = binding.limit
        if binding.sort:
            self._members |= {"order": binding.sort, "limit": 100}
        elif binding.orders:
            self._members["order"] = binding.orders[0].value
        if self._members.get("order") == "products":
            self._members["find"] = "publishers"

    async def _of_publisher(self) -> None:
        """ "What else have the makers of it made?": what is asked for is of the publisher of the product."""
        if len(self._products) != 1:
            return
        product = self._products[0]
        others = bool(_OTHERS & self._words)
        others_named = others and bool({"made", "they"} & self._words) and "else" in self._words
        kinds = any(
            self._binding.words[item.end - 1].endswith("s") and item.end != product.start
            for item in self._binding.of("kind")
        )
        if not ("org" in self._fields or others_named) or not (others or kinds):
            return
        org = await names.publisher_of(self._database, product.value)
        excluded = Values(none=(product.value,)) if others or product.is_negated else Values()
        self._where = replace(self._where, org=Values(any=(org or "",)), product=excluded)
        self._fields = [name for name in self._fields if name not in ("org", "notes")]
        self._products = []

    def _answer(self) -> None:
        binding = self._binding
        counted = _COUNTED_FIELDS & {*self._fields}
        if binding.by and not binding.orders:
            self._members |= {"answer": "breakdown", "by": binding.by}
        elif binding.answer == "count" and not (self._products and counted):
            self._members["answer"] = "count"
        elif binding.answer == "compare" and len(self._products) > 1:
            self._members["answer"] = "compare"
        elif binding.answer == "count":
            self._members |= {"answer": "fields", "fields": tuple(self._fields)}
        elif self._products:
            self._members |= self._answer_about_products()
        elif self._asks_whether:
            self._members["answer"] = "exists"

    def _answer_about_products(self) -> dict[str, Any]:
        binding, where = self._binding, self._where
        fields = tuple(self._fields[:4])
        if self._first == "who" and not fields:
            fields = ("org",)
        if self._asks_whether and "notes" not in fields and not (fields and _QUESTION_WORDS & self._words):
            is_choice = len(self._kinds) > 1 and "or" in self._words and len(self._products) == 1
            return {"answer": "fields", "fields": ("kind",)} if is_choice else {"answer": "exists"}
        if where.version != Values() and not fields and not binding.orders and not binding.nouns:
            fields = ("notes",)
        if binding.when == "first":
            self._members |= {"order": "oldest", "when": "any"}
        if fields and fields != ("versions",):
            is_whole = "notes" in fields and _WHOLE & self._words
            return {"answer": "fields", "fields": fields, **({"limit": MAX_NOTES} if is_whole else {})}
        return self._rows_of_products(where)

    def _rows_of_products(self, where: Where) -> dict[str, Any]:
        binding = self._binding
        several = len(self._products) > 1
        conditions = [item for item in binding.values if item.slot not in ("product", "version", "channel")]
        is_extreme = self._members.get("order") in ("newest", "oldest")
        if several and (conditions or (is_extreme and self._first == "which" and not binding.nouns)):
            return {"answer": "list", **({"limit": 1} if binding.orders else {})}
        if self._members["find"] == "releases" or binding.orders or self._fields:
            return self._releases_of_products(where, several=several)
        if (conditions or where.channel != Values()) and not binding.wants_all:
            return {"answer": "exists"}
        return {"answer": "fields"}

    def _releases_of_products(self, where: Where, *, several: bool) -> dict[str, Any]:
        binding = self._binding
        if where.version.any and not binding.orders:
            return {"find": "releases", "answer": "fields", "fields": ("published_at",)}
        if binding.orders and several:
            return {"find": "products", "answer": "fields", "fields": ("versions",)}
        nouns = {binding.words[noun.end - 1] for noun in self._releases}
        is_singular = bool(nouns & {"version", "release", "build", "update", "number"})
        is_open = not self._fields and not (_EACH | {"list"}) & self._words and not binding.times
        is_one = is_open and not where.version.all and self._members.get("limit") is None
        if is_one and (binding.orders or is_singular):
            return {"find": "releases", "limit": 1, "order": self._members.get("order", "newest")}
        return {"find": "releases"}

    def _in_notes(self) -> None:
        """Unknown words of a question about what changed are looked for in the notes."""
        unused, is_open = self._recognition.unused, self._where.version == Values() or self._asks_whether
        if not (self._products and unused and "notes" in self._fields and is_open):
            return
        self._where = replace(self._where, text=Values(all=tuple(terms_of(" ".join(unused))[:6])))
        self._members |= {"find": "releases", "answer": "exists" if self._asks_whether else "fields"}
        self._members.setdefault("fields", ("notes",))
        self._recognition.unused, self._recognition.unknown = [], ""

    def _limit(self) -> None:
        """How many are meant where the question gives no number."""
        members = self._members
        order = members.get("order")
        if order is None or "limit" in members:
            return
        if order in ("releases", "platforms", "products") and members["find"] != "releases":
            members["limit"] = 1
        elif order == "newest" and "answer" not in members and self._is_of_each():
            members |= {"find": "products", "answer": "fields", "fields": ("versions",)}
        elif order in ("newest", "oldest") and not self._products and members.get("when") != "last":
            members["limit"] = 1 if members["find"] == "releases" or not self._is_plural() else MAX_PLURAL

    def _is_of_each(self) -> bool:
        """Whether the newest release of each product is meant."""
        is_each = bool(self._binding.by) or bool(_EACH & self._words)
        if self._members["find"] != "releases":
            return is_each and self._is_extreme_channel()
        nouns = {self._binding.words[noun.end - 1] for noun in self._releases}
        return is_each or len(self._products) > 1 or ("versions" in nouns and not self._products)

    def _is_plural(self) -> bool:
        if {"was", "is", "one"} & {*self._binding.words[:6]}:
            return False
        nouns = [*self._binding.of("kind"), *self._binding.nouns]
        return any(self._binding.words[noun.end - 1].endswith("s") for noun in nouns)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")
