"""A question read: what is looked for, and in which form it is answered, from the conditions of the question."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from countersign.distribution.ask.conditions import AUXILIARIES, MAX_NUMBER, SLOT_OF_FIELD, Bound
from countersign.distribution.ask.dates import Range
from countersign.distribution.ask.follow_ups import is_onward, merged
from countersign.distribution.ask.items import Corrected, Item, Recognition, recognize
from countersign.distribution.ask.lexicon import tokens_of
from countersign.distribution.catalog import names
from countersign.distribution.catalog.filter import Filter, Values, with_slots
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
_TOPICS = frozenset(["platforms", "channels", "tags", "license", "kind"])
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
    is_about_text: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether every word that has a meaning was used."""
        return not (self.unused or self.guards or self.beyond or self.unknown)


async def read(database: Database, question: str, now: datetime, base: Filter | None = None) -> Reading:
    """The question as of now; `base` is what the question before it meant."""
    tokens = tokens_of(question)
    recognition = await recognize(database, question, tokens, now)
    bound = Bound(tokens, recognition.items)
    if base is None or not is_onward(bound.words, {item.slot for item in recognition.items}):
        return await _Builder(database, bound, recognition).reading()
    if not bound.of("product"):
        bound.values += [Item("product", slug, 0, 0) for slug in base.where.product.any]
    bound.guards = [guard for guard in bound.guards if guard not in ("instead", "next")]
    recognition.unused = [word for word in recognition.unused if word != "else"]
    reading = await _Builder(database, bound, recognition).reading()
    reading.filter = merged(base, reading.filter, bound.words)
    return reading


class _Builder:
    """Decides what is looked for and how it is answered."""

    def __init__(self, database: Database, bound: Bound, recognition: Recognition) -> None:
        self._database, self._bound, self._recognition = database, bound, recognition
        self._words = {*bound.words}
        self._slots = bound.slots()
        self._products = [item for item in bound.of("product") if not item.is_negated]
        self._fields = list(dict.fromkeys(bound.fields))
        self._kinds = [item.start for item in bound.of("kind")]
        self._members: dict[str, Any] = {}
        self._first = self._first_word()
        self._asks_whether = any((self._first in AUXILIARIES, bound.is_tag_question, bound.is_or_not))

    def _first_word(self) -> str:
        words = self._bound.words[self._bound.sentence.start :]
        is_polite = any(tuple(words[: len(phrase)]) == phrase for phrase in _POLITE)
        return words[0] if words and not is_polite else ""

    @property
    def _releases(self) -> list[Item]:
        return [item for item in self._bound.nouns if item.value == "releases"]

    @property
    def _unused(self) -> list[str]:
        return [word for word in self._recognition.unused if word not in self._bound.used]

    @property
    def _order_of(self) -> str:
        return str(self._members.get("order", ""))

    async def reading(self) -> Reading:
        """The filter, and what was not used."""
        bound, recognition = self._bound, self._recognition
        self._times()
        if not bound.is_terse:
            self._nouns()
            self._find()
            await self._of_publisher()
            self._order()
            self._compare()
            self._answer()
            self._in_notes()
            self._limit()
        self._pairs()
        if bound.has_unbound_not and [*self._unused, *self._fields] and self._members.get("answer") != "compare":
            bound.guards.append("not")
        found = with_slots(Filter(**self._members), **self._slots)
        rest = bound.guards, bound.beyond, recognition.unknown, recognition.corrected
        return Reading(found, self._unused, *rest, is_about_text="all" in bound.flags)

    def _pairs(self) -> None:
        """What was written as key=value goes before what was concluded."""
        pairs = self._bound.pairs
        for name, values in pairs.items():
            self._members[name] = tuple(values) if name == "fields" else values[0]
        if self._members.get("answer", "list") == "list" and pairs.keys() & {"by", "fields"}:
            self._members["answer"] = "breakdown" if "by" in pairs else "fields"

    def _nouns(self) -> None:
        """What the nouns of the question say beside what is looked for."""
        bound = self._bound
        if bound.denied_releases and self._products and not bound.nouns:
            bound.nouns = bound.denied_releases
        left_out = ["any"]
        if bound.of("product") and "publishers" in {*map(_value_of, bound.nouns)}:
            self._fields.append("org")
            left_out.append("publishers")
        bound.nouns = [noun for noun in bound.nouns if noun.value not in left_out]
        order = {"first": "oldest", "last": "newest"}.get("" if bound.times else bound.when)
        if order:
            bound.orders.append(Item("order", order, 0, 0))
            bound.when = "any"

    def _times(self) -> None:
        bound, channel = self._bound, self._slots.get("channel", Values())
        span = self._span()
        held = (*channel.any, *channel.all)
        if bound.times and span is None:
            bound.guards.append("several times")
        elif span is not None:
            self._members |= {"since": _moment(span.since), "until": _moment(span.until), "when": bound.when or "any"}
            if all((channel.none, not held, {"no", "without"} & self._words)):
                # "No beta since March": such a release is denied in that time.
                self._slots["channel"] = Values(any=channel.none)
                self._members["when"] = "none"
        elif bound.when == "none" and held:
            self._slots["channel"] = Values(none=(*held, *channel.none))
        elif bound.when == "none":
            self._members["when"] = "none"

    def _span(self) -> Range | None:
        """The times as one range; neighbours joined by "or" are both in it. None where there are none, or apart."""
        times = self._bound.times
        closed = [item for item in times if None not in item.value]
        since: list[datetime] = [*filter(None, (item.value.since for item in times))]
        until: list[datetime] = [*filter(None, (item.value.until for item in times))]
        if len(closed) > 1:
            is_joined = len(closed) == 2 and "or" in self._bound.words[closed[0].end : closed[1].start]
            return Range(min(since), max(until)) if is_joined else None
        return Range(max(since, default=None), min(until, default=None)) if times else None

    def _find(self) -> None:
        bound = self._bound
        find = bound.nouns[0].value if bound.nouns else "products"
        if "org" in self._fields and not bound.of("product"):
            find = "publishers"
        if find == "releases":
            find = self._find_releases()
        if not [*bound.nouns, *self._kinds]:
            if self._is_dated() or self._is_plural_channel() or self._is_extreme_channel():
                find = "releases"
            if {"play", "playable"} & self._words:
                self._slots["kind"] = Values(any=("game",))
        self._members["find"] = find

    def _find_releases(self) -> str:
        """Releases, unless the kind of product is what is asked for: "games with a release in May"."""
        bound = self._bound
        if _EACH & self._words and not [*bound.orders, *bound.times, *self._products]:
            bound.orders.append(Item("order", "newest", 0, 0))
        noun = bound.nouns[0].start
        is_of_products = any(bound.sentence.start <= kind < noun - 1 for kind in self._kinds)
        return "products" if is_of_products else "releases"

    def _is_dated(self) -> bool:
        bound = self._bound
        return all((bound.times, bound.when in ("", "any"), self._first not in ("who", "whose")))

    def _is_plural_channel(self) -> bool:
        return any(self._bound.words[item.start] in _PLURAL_CHANNELS for item in self._bound.of("channel"))

    def _is_extreme_channel(self) -> bool:
        """Whether "the newest beta" is asked for."""
        ends = [item.end for item in self._bound.orders[-1:]]
        return any(item.start in ends for item in self._bound.of("channel"))

    def _order(self) -> None:
        bound = self._bound
        if bound.limit is not None:
            self._members["limit"] = bound.limit
        if bound.sort:
            self._members |= {"order": bound.sort, "limit": MAX_NUMBER}
        elif bound.orders:
            self._members["order"] = bound.orders[0].value
        if self._order_of == "products":
            self._members["find"] = "publishers"

    async def _of_publisher(self) -> None:
        """ "What else have the makers of it made?": what is asked for is of the publisher of the product."""
        products = self._bound.of("product")
        others = bool(_OTHERS & self._words)
        if len(products) != 1 or not self._is_of_publisher(products[0], others=others):
            return
        product = products[0]
        org = await names.publisher_of(self._database, product.value)
        excluded = Values(none=(product.value,)) if others or product.is_negated else Values()
        self._slots |= {"org": Values(any=(org,)), "product": excluded}
        self._fields = [name for name in self._fields if name not in ("org", "notes")]
        self._products = []
        self._members["find"] = "products"

    def _is_of_publisher(self, product: Item, *, others: bool) -> bool:
        words = self._bound.words
        kinds = [item for item in self._bound.of("kind") if words[item.end - 1].endswith("s")]
        is_plural = any(item.end != product.start for item in kinds)
        is_named = all((others, {"made", "they"} & self._words, "else" in self._words))
        return ("org" in self._fields or is_named) and (others or is_plural or product.is_negated)

    def _compare(self) -> None:
        """ "Are A and B by the same studio?", "Was A updated more recently than B?": Yes and No about two products."""
        bound = self._bound
        fields = [name for name in self._fields if name in SLOT_OF_FIELD]
        is_two = len(self._products) == 2
        if all((is_two, self._asks_whether, "than" in bound.guards, bound.orders)):
            bound.guards.remove("than")
            bound.answer = "exists"
        elif "same" in bound.flags and len(self._products) > 1 and fields:
            bound.answer = "exists"
            self._members["fields"] = tuple(fields)
        elif "same" in bound.flags:
            bound.guards.append("same")
        bound.guards += [guard for guard, holds in self._doubts() if holds]

    def _doubts(self) -> tuple[tuple[str, bool], ...]:
        """What could be meant in several ways."""
        bound = self._bound
        is_of_one = len(self._products) == 1 and bool([*self._kinds, *bound.of("org")])
        is_of_some = all((self._asks_whether, self._products, bound.orders))
        orders = {bound.words[item.start] for item in bound.orders}
        begin = bound.sentence.start + 1
        is_of_all = bool(_EACH & {*bound.words[begin : begin + 1]})
        return (
            (self._order_of, is_of_some and any((bound.times, is_of_one))),
            ("all", all((self._asks_whether, not self._products, is_of_all))),
            ("only", all(("only" in self._words, self._members["find"] == "publishers"))),
            ("current", all((bound.times, {"current", "currently"} & orders))),
            ("versions of several products", all((len(self._products) > 1, bound.of("version")))),
        )

    def _answer(self) -> None:
        """The form of the answer: the first rule that fits."""
        for fits, form in _FORMS:
            if fits(self):
                form(self)
                return

    @property
    def counts_by_order(self) -> list[str]:
        """The slots that "which platform has the most games" counts by."""
        is_ordered = self._order_of == "products"
        return [SLOT_OF_FIELD[name] for name in self._fields if name in _TOPICS and is_ordered]

    @property
    def wants_newest_of_channels(self) -> bool:
        """Whether the newest release in each channel is asked for."""
        bound = self._bound
        is_by_channel = bound.by == "channel" or len(bound.of("channel")) > 1
        return all((self._products, bound.orders, is_by_channel))

    def is_count(self) -> bool:
        """Whether a number is asked for that is not a number of fields of a product."""
        counted = self._products and _COUNTED_FIELDS & {*self._fields}
        return self._bound.answer == "count" and not counted and self._order_of != "products"

    def is_newer(self) -> bool:
        """Whether there is a release after a version."""
        return all(("newer" in self._bound.flags, self._products, self._bound.of("version")))

    def is_breakdown(self) -> bool:
        """Whether something is counted by a slot."""
        bound = self._bound
        is_of_releases = self._members["find"] == "releases" and self._releases
        return bool(bound.by) and not (bound.orders or is_of_releases)

    def newer(self) -> None:
        """Ask for releases after the version."""
        version = self._slots["version"]
        self._slots["version"] = Values(all=(*(f">{each}" for each in version.any), *version.all))
        self._members |= {"find": "releases", "answer": "exists"}

    def count(self) -> None:
        """Ask for a number: of a product, how many releases it has."""
        self._members["answer"] = "count"
        self._members["find"] = "releases" if len(self._products) == 1 else self._members["find"]

    def compare(self) -> None:
        """Compare products, whatever words are between them."""
        self._members["answer"] = "compare"
        self._slots["product"] = Values(any=tuple(str(item.value) for item in self._bound.of("product")))

    def about_products(self) -> None:
        """Answer about named products."""
        bound = self._bound
        fields: tuple[str, ...] = tuple(self._fields[:4]) or {"who": ("org",)}.get(self._first, ())
        is_open = any(("notes" in fields, fields and _QUESTION_WORDS & self._words))
        if self._asks_whether and not is_open:
            self._members |= self._whether_of_products()
        elif "version" in self._slots and not [*fields, *bound.orders, *bound.nouns]:
            self._members |= {"answer": "fields", "fields": ("notes",)}
        elif fields in ((), ("versions",)):
            self._members |= self._rows_of_products()
        else:
            self._members |= {"answer": "fields", "fields": fields}
        if all(("notes" in self._members.get("fields", ()), _WHOLE & self._words)):
            self._members["limit"] = MAX_NOTES

    def _whether_of_products(self) -> dict[str, Any]:
        is_choice = all((len(self._kinds) > 1, "or" in self._words, len(self._products) == 1))
        return {"answer": "fields", "fields": ("kind",)} if is_choice else {"answer": "exists"}

    def _rows_of_products(self) -> dict[str, Any]:
        bound = self._bound
        conditions = {item.slot for item in bound.values} - {"product", "version", "channel"}
        if len(self._products) > 1 and (conditions or self._is_choice()):
            return {"answer": "list", **({"limit": 1} if bound.orders else {})}
        if self._members["find"] == "releases" or [*bound.orders, *self._fields]:
            return self._releases_of_products()
        is_whether = all((conditions | {*self._slots} & {"channel"}, "all" not in bound.flags))
        return {"answer": "exists" if is_whether else "fields"}

    def _is_choice(self) -> bool:
        """Whether one of the products is asked for: "which of A and B is newer"."""
        is_which = all((self._order_of in ("newest", "oldest"), self._first == "which", not self._bound.nouns))
        is_either = bool(self._bound.orders) and any(item.joint == "or" for item in self._products)
        return any((is_which, is_either, self._order_of in ("releases", "platforms")))

    def _releases_of_products(self) -> dict[str, Any]:
        bound, version = self._bound, self._slots.get("version", Values())
        if version.any and not bound.orders:
            return {"find": "releases", "answer": "fields", "fields": ("published_at",)}
        if bound.orders and len(self._products) > 1:
            return {"find": "products", "answer": "fields", "fields": ("versions",)}
        singular = {"version", "release", "build", "update", "number"}
        is_singular = singular & {bound.words[noun.end - 1] for noun in self._releases}
        several = [*self._fields, *bound.times, *version.all, *((_EACH | {"list"}) & self._words)]
        is_one = any((bound.orders, is_singular)) and not several
        one = {"limit": 1, "order": self._order_of or "newest"}
        return {"find": "releases", **(one if is_one and "limit" not in self._members else {})}

    def _in_notes(self) -> None:
        """Unknown words of a question about what changed are looked for in the notes."""
        about_notes = "notes" in self._fields
        is_asked = about_notes or (not self._asks_whether and bool(self._releases or "published_at" in self._fields))
        is_open = "version" not in self._slots or self._asks_whether
        if not all((self._unused, is_asked, is_open, len(self._products) == 1, "newer" not in self._bound.flags)):
            return
        terms = tuple(terms_of(" ".join(self._unused))[:6])
        self._slots["text"] = Values(all=terms) if self._asks_whether else Values(any=terms)
        self._members |= {"find": "releases", "answer": "exists" if self._asks_whether else "fields"}
        self._members |= {"fields": ("notes",), "order": "title", "limit": None}
        self._recognition.unused, self._recognition.unknown = [], ""

    def _limit(self) -> None:
        """How many are meant where the question gives no number."""
        members, order = self._members, self._order_of
        if not order or "limit" in members:
            return
        is_of_releases = members["find"] == "releases"
        is_by_number = order in ("releases", "platforms", "products")
        if is_by_number and not is_of_releases:
            members["limit"] = 1
        elif all((order == "newest", "answer" not in members, self._is_of_each())):
            members |= {"find": "products", "answer": "fields", "fields": ("versions",)}
        elif not any((is_by_number, order == "title", self._products, members.get("when") == "last")):
            members["limit"] = MAX_PLURAL if self._is_plural() and not is_of_releases else 1

    def _is_of_each(self) -> bool:
        """Whether the newest release of each product is meant."""
        is_each = bool(self._bound.by) or bool(_EACH & self._words)
        if self._members["find"] != "releases":
            return is_each and self._is_extreme_channel()
        nouns = {self._bound.words[noun.end - 1] for noun in self._releases}
        return any((is_each, len(self._products) > 1, "versions" in nouns and not self._products))

    def _is_plural(self) -> bool:
        if {"was", "is"} & {*self._bound.words[:6]} or "one" in self._words:
            return False
        nouns = [*self._bound.of("kind"), *self._bound.nouns]
        return any(self._bound.words[noun.end - 1].endswith("s") for noun in nouns)

    def set(self, **members: Any) -> None:
        """Set members of the filter."""
        self._members |= members

    @property
    def bound(self) -> Bound:
        """What the question's words are bound to."""
        return self._bound

    @property
    def has_products(self) -> bool:
        """Whether the question names products."""
        return bool(self._products)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the question asks for."""
        return tuple(self._fields)

    @property
    def fields_of_each(self) -> tuple[str, ...]:
        """The fields that are asked for of each product of a list."""
        is_each = _EACH & self._words and self._members["find"] == "products"
        return tuple(name for name in self._fields if is_each and name in SLOT_OF_FIELD)

    @property
    def asks_whether(self) -> bool:
        """Whether the answer is Yes or No."""
        return self._asks_whether


_FORMS: tuple[tuple[Callable[[_Builder], object], Callable[[_Builder], None]], ...] = (
    (
        lambda it: it.counts_by_order,
        lambda it: it.set(answer="breakdown", by=it.counts_by_order[0], find="products", order="title"),
    ),
    (lambda it: it.bound.answer == "exists", lambda it: it.set(answer="exists")),
    (lambda it: it.wants_newest_of_channels, lambda it: it.set(answer="fields", fields=("channels",), order="title")),
    (_Builder.is_newer, _Builder.newer),
    (_Builder.is_breakdown, lambda it: it.set(answer="breakdown", by=it.bound.by)),
    (_Builder.is_count, _Builder.count),
    (lambda it: it.bound.answer == "compare" and len(it.bound.of("product")) > 1, _Builder.compare),
    (lambda it: it.bound.answer == "count" and it.fields, lambda it: it.set(answer="fields", fields=it.fields)),
    (lambda it: it.has_products, _Builder.about_products),
    (lambda it: it.asks_whether, lambda it: it.set(answer="exists")),
    (lambda it: it.fields_of_each, lambda it: it.set(answer="fields", fields=it.fields_of_each)),
)
"""The forms of answers, with what they are chosen by; the first that fits is taken."""


def _value_of(item: Item) -> str:
    return str(item.value)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")
