"""Interpret a question: determine what the question asks for, and the form of the answer. If the question changes the
previous question ("and on Windows?", "how many of those?"), the conditions of the previous question also apply."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import filterfalse, pairwise
from typing import Any

from msgspec.structs import replace

from countersign.kernel.database.port import Database
from countersign.store.ask.conditions import MAX_NUMBER, MULTIPLE, SLOT_OF_FIELD, Bound
from countersign.store.ask.items import Corrected, Recognition, recognize
from countersign.store.ask.lexicon import COURTESY, tokens_of
from countersign.store.ask.scope import AUXILIARIES, Item
from countersign.store.catalog import names
from countersign.store.catalog.filter import Filter, Values, conditions, slot, with_slots
from countersign.store.catalog.search import words as terms_of

MAX_PLURAL = 10
"""The number of results for a request without a number, such as "the newest games"."""
MAX_NOTES = 50
_EACH = frozenset(["every", "each", "all"])
_WHOLE = _EACH | {"whole", "full", "entire", "complete"}
_OPENINGS = frozenset(str.split("and or only just but also now then ok okay cool great thanks without not no any"))
_BACKWARD = frozenset(str.split("it its it's they them their those these that ones one same instead there else others"))
_ASKING = frozenset(str.split("which what who when list show how is are does do"))
_NARROWING = frozenset(["those", "these", "them"])
_OTHERS = frozenset(["else", "others", "besides"])
_MAKING = frozenset(["made", "make", "they"])
_CHOICES = ("kind", "access")
OF_OTHERS = frozenset(["who", "why", "how", "where"])
"""Words that begin a question that asks for something other than a list."""
_COUNTED_FIELDS = frozenset(["platforms", "channels", "tags"])
_SINGULAR = frozenset(["version", "release", "build", "update", "number"])


_PRONOUNS = frozenset(["it", "that", "this", "they", "there"])


@dataclass(slots=True)
class Reading:
    """The interpretation of a question.

    `unused` contains the words that did not become part of the filter. `guards` contains words that change the meaning
    of the question in a way that the filter does not express. `beyond` contains words that ask for something that no
    catalog contains. `unknown` is a name that the catalog does not contain.
    """

    filter: Filter
    unused: list[str] = field(default_factory=list[str])
    guards: list[str] = field(default_factory=list[str])
    beyond: list[str] = field(default_factory=list[str])
    unknown: str = ""
    corrected: list[Corrected] = field(default_factory=list[Corrected])
    is_about_text: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the filter expresses every word that has a meaning."""
        return not (self.unused or self.guards or self.beyond or self.unknown)


async def read(database: Database, question: str, now: datetime, base: Filter | None = None) -> Reading:
    """Interpret the question at the time `now`; `base` is the filter of the previous question."""
    tokens = tokens_of(question)
    recognition = await recognize(database, question, tokens, now)
    bound = Bound(tokens, recognition.items)
    words = bound.words[bound.sentence.start :]
    if base is None or not _is_onward(words, {item.slot for item in recognition.items}):
        return await _Builder(bound, recognition).reading(database)
    if not bound.of("product"):
        # "What else …" excludes the products that the previous question named.
        is_other = not _OTHERS.isdisjoint(words)
        bound.values += [Item("product", slug, 0, 0, is_negated=is_other) for slug in base.where.product.any]
        bound.used |= _OTHERS if is_other else set()
    bound.guards = [guard for guard in bound.guards if guard not in ("instead", "next")]
    reading = await _Builder(bound, recognition).reading(database)
    reading.filter = _merged(base, reading.filter, words)
    return reading


def _is_onward(words: Sequence[str], slots: set[str]) -> bool:
    """Whether the question depends on the previous question. This is the case if the question refers back, begins like
    a continuation, or does not say what to search for."""
    is_fragment = words[:1] and (words[0] in _OPENINGS or words[1:2] == ["about"])
    return bool(_BACKWARD & {*words} or is_fragment or not slots & {"kind", "product", "find", "org"})


def _merged(base: Filter, query: Filter, words: Sequence[str]) -> Filter:
    """Return the base filter with the changes that the new question makes."""
    changes: dict[str, Any] = {}
    if (query.since, query.until, query.when) != (None, None, "any"):
        changes |= {"since": query.since, "until": query.until, "when": query.when}
    if (query.order, query.limit) != ("title", None):
        changes |= {"order": query.order, "limit": query.limit}
    asks = not _is_alike(base, query, words) and any((query.answer != "list", _ASKING & {*words[:3]}))
    if asks:
        changes |= {"answer": query.answer, "fields": query.fields, "by": query.by}
    if query.find != "products" or (asks and base.find == "publishers"):
        changes["find"] = query.find
    return replace(_merged_slots(base, query, is_narrowed=not _NARROWING.isdisjoint(words)), **changes)


def _is_alike(base: Filter, query: Filter, words: Sequence[str]) -> bool:
    """Whether the question asks for the same form of answer as the previous question. "And on Windows?" does; "and how
    many?" does not."""
    is_about = "about" in words[1:2] or "and" in words[:1]
    is_plain = query.answer in ("list", "exists", "fields") and not query.fields
    return "same" in words or (is_about and is_plain and base.answer != "list")


def _merged_slots(base: Filter, query: Filter, *, is_narrowed: bool) -> Filter:
    if query.where.product.any and query.where.product != base.where.product and base.answer == "list":
        return replace(base, where=query.where, channel=query.channel)
    for name, values in conditions(query):
        base = with_slots(base, **{name: _merged_values(name, slot(base, name), values, is_narrowed=is_narrowed)})
    return base


def _merged_values(name: str, before: Values, values: Values, *, is_narrowed: bool) -> Values:
    is_denial = not (values.any or values.all) and name != "product"
    if is_denial:
        return replace(before, none=tuple(dict.fromkeys((*before.none, *values.none))))
    if is_narrowed and name in MULTIPLE and len(before.any) == 1 and before.any != values.any:
        # "How many of those run on Linux too?"
        return Values(all=(*before.any, *values.any, *values.all))
    return values


class _Builder:
    """Determines what to search for, and the form of the answer."""

    def __init__(self, bound: Bound, recognition: Recognition) -> None:
        self._bound, self._recognition = bound, recognition
        self._words = {*bound.words}
        self._slots = bound.slots()
        self._products = [item for item in bound.of("product") if not item.is_negated]
        self._fields = list(dict.fromkeys(item.value for item in bound.found["field"]))
        self._kinds = [item.start for item in bound.of("kind")]
        self._releases = [item for item in bound.nouns if item.value == "releases"]
        self._unused = list(filterfalse(bound.used.__contains__, recognition.unused))
        self._members: dict[str, Any] = {}
        self._order_of = ""
        self._first = next((word for word in bound.words[bound.sentence.start :] if word not in COURTESY), "")
        self._asks_whether = self._is_whether()

    def _is_whether(self) -> bool:
        """Whether the question is a yes/no question, such as "Does Keyturn …" or "And Keyturn, does it run on
        Linux?"."""
        words = self._bound.words
        if self._first in AUXILIARIES and not self._bound.found["polite"]:
            return True
        if "whether" in words:
            return True
        at = words.index(",") + 1 if "," in words else len(words)
        return bool(AUXILIARIES & {*words[at : at + 1]} and _PRONOUNS & {*words[at + 1 : at + 2]})

    async def reading(self, database: Database) -> Reading:
        """Build the filter, and collect the words that are not part of the filter."""
        bound, recognition = self._bound, self._recognition
        self._times()
        if not bound.is_terse:
            self._nouns()
            self._find()
            await self._of_publisher(database)
            self._order()
            self._compare()
            bound.guards += [guard for guard, holds in self._doubts() if holds]
            self._answer()
            self._in_notes()
            self._limit()
        self._pairs()
        if bound.has_unbound_not and self._members.get("answer") != "compare":
            bound.guards.append("not")
        found = with_slots(Filter(**self._members), **self._slots)
        bound.guards += self._unanswered(found)
        beyond = [item.value for item in bound.found["beyond"] if not self._is_afterthought(item)]
        self._unused += [item.value for item in bound.found["beyond"] if item.value not in beyond]
        rest = bound.guards, beyond, recognition.unknown, recognition.corrected
        return Reading(found, self._unused, *rest, is_about_text=bool(bound.found["all"]))

    def _is_afterthought(self, item: Item) -> bool:
        """Whether the item is in a separate clause after all conditions, as in "What's new in X, worth the update?"."""
        end = max([each.end for each in self._bound.values], default=item.start)
        return "," in self._bound.words[end : item.start]

    def _unanswered(self, found: Filter) -> list[str]:
        """Return what the question asks about unnamed products that a list of products does not answer: the question
        word ("who", "why"), and the names of fields."""
        if self._products or (found.answer, found.find) != ("list", "products"):
            return []
        others = [self._first] if self._unused and self._first in OF_OTHERS else []
        return [*others, *(name for name in self._fields if SLOT_OF_FIELD.get(name) not in self._slots)]

    def _pairs(self) -> None:
        """Use the members that the question states as key=value instead of the inferred members."""
        pairs = self._bound.pairs
        for name, values in pairs.items():
            self._members[name] = tuple(values) if name == "fields" else values[0]
        if self._members.get("answer", "list") == "list" and pairs.keys() & {"by", "fields"}:
            self._members["answer"] = "breakdown" if "by" in pairs else "fields"

    def _nouns(self) -> None:
        """Apply the nouns that do not name what the question asks for."""
        bound = self._bound
        bound.nouns = [noun for noun in bound.nouns if noun.value != "any"]
        if bound.of("product") and any(noun.value == "publishers" for noun in bound.nouns):
            self._fields.append("org")
            bound.nouns = [noun for noun in bound.nouns if noun.value != "publishers"]
        order = {"first": "oldest", "last": "newest"}.get("" if bound.times else bound.when)
        if order:
            bound.orders.append(Item("order", order, 0, 0))
            bound.when = "any"

    def _times(self) -> None:
        """Combine the times into one range."""
        bound, times = self._bound, self._bound.times
        since: list[datetime] = [*filter(None, (item.value.since for item in times))]
        until: list[datetime] = [*filter(None, (item.value.until for item in times))]
        if self._are_apart([item for item in times if None not in item.value]):
            bound.guards.append("several times")
        elif times:
            span = {"since": _moment(max(since, default=None)), "until": _moment(min(until, default=None))}
            self._members |= {**span, "when": bound.when or "any"}
            if all(({"no", "without"} & {*bound.words[slice(*bound.sentence)]}, "channel" in self._slots)):
                # "No beta since March" is ambiguous: it can exclude products with a beta release since March, or only
                # exclude the beta channel from the releases since March.
                bound.guards.append("no")
        elif bound.when == "none":
            self._members["when"] = "none"

    @staticmethod
    def _are_apart(ranges: Sequence[Item]) -> bool:
        """Whether the times cannot be combined into one range. "In September of this year" can be combined."""
        return any(
            second.start > first.end + 2
            or first.value.since >= second.value.until
            or second.value.since >= first.value.until
            for first, second in pairwise(ranges)
        )

    def _find(self) -> None:
        bound = self._bound
        find = bound.nouns[0].value if bound.nouns else "products"
        if find == "releases":
            find = self._find_releases(bound.nouns[0].start)
        if "org" in self._fields and not bound.of("product"):
            find = "publishers"
        elif not [*bound.nouns, *self._kinds]:
            is_dated = bound.times and bound.when in ("", "any")
            if any((is_dated, self._is_plural(bound.of("channel")), self._is_extreme_channel())):
                find = "releases"
            if {"play", "playable"} & self._words:
                self._slots["kind"] = Values(any=("game",))
        self._members["find"] = find

    def _find_releases(self, noun: int) -> str:
        """Return "releases", or "products" if the question asks for a kind of product, as in "games with a release in
        May"."""
        bound = self._bound
        if _EACH & self._words and not [*bound.orders, *bound.times, *self._products]:
            bound.orders.append(Item("order", "newest", 0, 0))
        is_of_products = any(bound.sentence.start <= kind < noun - 1 for kind in self._kinds)
        is_of_products |= "never" in self._words and not [*bound.times, *self._products]
        return "products" if is_of_products else "releases"

    def _is_extreme_channel(self) -> bool:
        """Whether a channel follows the order, as in "the newest beta"."""
        ends = [item.end for item in self._bound.orders[-1:]]
        return any(item.start in ends for item in self._bound.of("channel"))

    def _order(self) -> None:
        bound = self._bound
        limit = MAX_NUMBER if bound.found["sort"] else bound.limit
        self._members |= {} if limit is None else {"limit": limit}
        if bound.orders:
            self._order_of = self._members["order"] = bound.orders[0].value
        if self._order_of == "products":
            self._members["find"] = "publishers"

    async def _of_publisher(self, database: Database) -> None:
        """Search for the other products of the publisher, as in "What else have the makers of it made?"."""
        products = self._bound.of("product")
        if len(products) == 1 and _OTHERS & self._words and ("org" in self._fields or _MAKING & self._words):
            org = await names.publisher_of(database, products[0].value)
            self._slots |= {"org": Values(any=(org,)), "product": Values(none=(products[0].value,))}
            self._fields, self._products = [], []
            self._unused = [word for word in self._unused if word not in _OTHERS]
            self._members["find"] = "products"

    def _compare(self) -> None:
        """Answer yes or no about two products: "Are A and B by the same studio?", "Was A updated more recently than
        B?"."""
        bound = self._bound
        fields = tuple(name for name in self._fields if name in SLOT_OF_FIELD)
        if all((len(self._products) > 1, self._asks_whether, "than" in bound.guards, bound.orders)):
            bound.guards.remove("than")
            bound.answer = "exists"
        elif bound.found["same"] and len(self._products) > 1 and fields:
            bound.answer, self._members["fields"] = "exists", fields

    def _doubts(self) -> tuple[tuple[str, bool], ...]:
        """Return pairs of a guard and a condition. The guard applies if the condition is true: the question is then
        ambiguous, or a filter cannot express the question."""
        bound, words, products = self._bound, self._words, self._products
        begin = bound.sentence.start + 1
        is_of_all = bool(_EACH & {*bound.words[begin : begin + 1]})
        of_some = [*bound.times, *self._kinds, *bound.of("org")]
        return (
            (self._order_of, all((self._asks_whether, products, bound.orders, of_some))),
            ("all", all((self._asks_whether, not products, is_of_all))),
            ("only", all(("only" in words, self._members["find"] == "publishers"))),
            ("makers", all((products, "org" in self._fields, self._is_plural(bound.of("kind"))))),
            ("same", all((bound.found["same"], "fields" not in self._members))),
            ("most", all((self._order_of == "products", self._fields))),
            ("versions of several products", all((len(products) > 1, bound.of("version")))),
        )

    def _answer(self) -> None:
        """Set the form of the answer to the first form that matches the question."""
        bound, members = self._bound, self._members
        if bound.answer == "exists":
            members["answer"] = "exists"
        elif self._is_of_channels():
            members |= {"answer": "fields", "fields": ("channels",), "order": "title"}
        elif bound.by and not bound.orders:
            members |= {"answer": "breakdown", "by": bound.by}
        elif bound.answer == "count" and not self._is_of_extreme():
            members |= {"answer": "count", "find": "releases" if len(self._products) == 1 else members["find"]}
        else:
            self._answer_of_products()

    def _answer_of_products(self) -> None:
        """Compare named products, describe named products, or answer whether a matching product exists."""
        named = self._slots.get("product", Values())
        if self._bound.answer == "compare" and len(self._bound.of("product")) > 1:
            self._members["answer"] = "compare"
            self._slots["product"] = Values(any=(*named.any, *named.none))
        elif self._products:
            self._about_products()
        elif self._asks_whether:
            self._members["answer"] = "exists"

    def _is_of_channels(self) -> bool:
        """Whether the question asks for the newest release in each channel."""
        bound = self._bound
        return all((self._products, bound.orders, bound.by == "channel" or len(bound.of("channel")) > 1))

    def _is_of_extreme(self) -> bool:
        """Whether "number" refers to a field of a product instead of a count of results, as in "the number of platforms
        of X" and "the number of its latest release"."""
        is_of_product = self._products and (self._bound.orders or _COUNTED_FIELDS & {*self._fields})
        return bool(is_of_product) or self._order_of == "products"

    def _about_products(self) -> None:
        """Answer a question about named products."""
        fields = tuple(self._fields[:4])
        # "Is it free or paid?" names two values, but a product has only one value for access: answer with that value.
        choices = self._choices()
        if choices and len(self._products) == 1:
            self._members |= {"answer": "fields", "fields": choices}
        elif all((self._asks_whether, "notes" not in fields)):
            self._members["answer"] = "exists"
        elif self._is_of_version():
            self._members |= {"answer": "fields", "fields": ("notes",)}
        elif fields in ((), ("versions",)):
            self._members |= self._rows_of_products()
        else:
            self._members |= {"answer": "fields", "fields": fields}
        if all(("notes" in self._members.get("fields", ()), _WHOLE & self._words)):
            self._members["limit"] = MAX_NOTES

    def _choices(self) -> tuple[str, ...]:
        several = {name for name, values in self._slots.items() if len(values.any) > 1}
        if "version" in self._slots and "channel" in several:
            # "Did 1.1.0 come out as stable or as beta?"
            del self._slots["channel"]
            return ("versions",)
        return tuple(name for name in _CHOICES if name in several)

    def _is_of_version(self) -> bool:
        """Whether the question asks for everything about a version: "Summarise the 1.9.1 release"."""
        bound = self._bound
        nouns = [] if bound.found["all"] else bound.nouns
        return "version" in self._slots and not [*self._fields, *bound.orders, *nouns]

    def _rows_of_products(self) -> dict[str, Any]:
        bound = self._bound
        conditions = {item.slot for item in bound.values} - {"product", "version", "channel"}
        is_which = all((self._first == "which", not bound.nouns))  # "Which of A and B is the newest?"
        is_either = any((is_which, *(item.joint == "or" for item in self._products)))
        is_either &= not {"more", "recently"} <= self._words  # "more recently" compares both products
        is_choice = any((all((bound.orders, is_either)), self._order_of in ("releases", "platforms")))
        if len(self._products) > 1 and any((conditions, is_choice)):
            return {"answer": "list", **({"limit": 1} if bound.orders else {})}
        if any((self._members["find"] == "releases", bound.orders, self._fields)):
            return self._releases_of_products()
        is_whether = any((conditions, "channel" in self._slots)) and not bound.found["all"]
        return {"answer": "exists" if is_whether else "fields"}

    def _releases_of_products(self) -> dict[str, Any]:
        bound = self._bound
        if bound.orders and len(self._products) > 1:
            return {"find": "products", "answer": "fields", "fields": ("versions",)}
        is_singular = bool(_SINGULAR & {bound.words[noun.end - 1] for noun in self._releases})
        several = [*self._fields, *bound.times, *bound.of("version"), *((_EACH | {"list"}) & self._words)]
        is_one = (bound.orders or is_singular) and not several and "limit" not in self._members
        return {"find": "releases", **({"limit": 1, "order": self._order_of or "newest"} if is_one else {})}

    def _in_notes(self) -> None:
        """Search the release notes for the unknown words of a question about changes."""
        about_notes, is_whether = "notes" in self._fields, self._asks_whether
        is_of_releases = [*self._releases, *({"published_at"} & {*self._fields})]
        is_question = any((about_notes, not [*is_whether * [1], *self._bound.orders] and is_of_releases))
        is_question &= about_notes or self._recognition.is_in_texts
        is_open = any(("version" not in self._slots, is_whether))
        if not all((self._unused, is_question, is_open, len(self._products) == 1)):
            return
        terms = tuple(terms_of(" ".join(self._unused))[:6])
        self._slots["text"] = Values(all=terms) if is_whether else Values(any=terms)
        self._members |= {"find": "releases", "answer": "exists" if is_whether else "fields"}
        self._members |= {"fields": ("notes",), "order": "title", "limit": None}
        self._unused, self._recognition.unknown = [], ""

    def _limit(self) -> None:
        """Set the number of results if the question contains no number."""
        members, order = self._members, self._order_of
        if not order or "limit" in members:
            return
        is_of_releases = members["find"] == "releases"
        is_each = any((self._bound.by, _EACH & self._words))
        are_versions = "versions" in {self._bound.words[noun.end - 1] for noun in self._releases}
        is_of_each = any((is_each, are_versions)) if is_of_releases else all((is_each, self._is_extreme_channel()))
        is_by_number = order in ("releases", "platforms", "products")
        if all((is_by_number, not is_of_releases)):
            members["limit"] = 1
        elif all((order == "newest", "answer" not in members, is_of_each)):
            members |= {"find": "products", "answer": "fields", "fields": ("versions",)}
        elif not any((is_by_number, order == "title", self._products, members.get("when") == "last")):
            beginning = self._bound.words[self._bound.sentence.start :][:6]
            is_one = any((is_of_releases, {"was", "is"} & {*beginning}, "one" in self._words))
            is_plural = self._is_plural([*self._bound.of("kind"), *self._bound.nouns])
            members["limit"] = MAX_PLURAL if all((is_plural, not is_one)) else 1

    def _is_plural(self, nouns: Iterable[Item]) -> bool:
        return any(self._bound.words[noun.end - 1].endswith("s") for noun in nouns)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
