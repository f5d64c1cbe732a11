"""Interpret a question: determine what the question asks for, and the form of the answer. If the question changes the
previous question ("and on Windows?", "how many of those?"), the conditions of the previous question also apply."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import filterfalse, pairwise
from typing import Any

import msgspec
from msgspec.structs import replace

from countersign.kernel.database.port import Database
from countersign.store.ask.conditions import MAX_NUMBER, MULTIPLE, Bound
from countersign.store.ask.items import Corrected, Recognition, recognize
from countersign.store.ask.lexicon import COURTESY, LISTS, WordToken, tokens_of, without_keys
from countersign.store.ask.scope import AUXILIARIES, QUESTION_WORDS, SLOT_OF_FIELD, Item
from countersign.store.catalog import names
from countersign.store.catalog.filter import SLOTS, Filter, Values, conditions, error_in, slot, with_slots
from countersign.store.catalog.search import words as terms_of

MAX_PLURAL = 10
"""The number of results for a request without a number, such as "the newest games"."""
MAX_NOTES = 50
OF_OTHERS = LISTS["of others"]
"""Words that begin a question that asks for something other than a list."""
_ALL = LISTS["all"]
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_COUNTED_FIELDS = frozenset(["platforms", "channels", "tags"])
_OF_RELEASES = frozenset(["product", "version", "channel"])
"""The slots of conditions that name a product's releases; the others restrict the products."""
_COUNTS = frozenset(["releases", "platforms", "products"])
"""The orders by a number."""
_VALUE = re.compile(r'"[^"]+"|[^\s";|&=!,]+')
_PAIR = re.compile(rf"(?:^|(?<=;))\s*(\w+)\s*(!?=)\s*((?:{_VALUE.pattern})(?:[|&](?:{_VALUE.pattern}))*)\s*(?:;|$)")
_DAY = re.compile(r"(?<=since=|until=)(\d{4}-\d\d-\d\d)(?=\s*(?:;|$))")
_FORMS = {"fields": "fields", "by": "breakdown"}
"""The form of answer that each member of a stated filter requires."""


@dataclass(slots=True)
class Reading:
    """The interpretation of a question.

    `unused` contains the words that did not become part of the filter. `guards` contains words that change the meaning
    of the question in a way that the filter does not express. `beyond` contains words that ask for something that no
    catalog contains. `unknown` is a name that the catalog does not contain. `is_search` is true if words are searched
    for that may have another meaning.
    """

    filter: Filter
    unused: list[str] = field(default_factory=list[str])
    guards: list[str] = field(default_factory=list[str])
    beyond: list[str] = field(default_factory=list[str])
    unknown: str = ""
    corrected: list[Corrected] = field(default_factory=list[Corrected])
    is_about_text: bool = False
    is_search: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the filter expresses every word that has a meaning."""
        return not (self.unused or self.guards or self.beyond or self.unknown)


async def read(database: Database, question: str, now: datetime, base: Filter | None = None) -> Reading:
    """Interpret the question at the time `now`; `base` is the filter of the previous question."""
    stated = await _stated_filter(database, question)
    if stated is not None and base is None:
        return Reading(stated)
    tokens = without_keys(tokens_of(question))
    recognition = await recognize(database, question, tokens, now)
    builder = _Builder(tokens, recognition)
    words = builder.words[builder.sentence.start :]
    if base is None or not _is_continuation(words, {item.slot for item in recognition.items}):
        return await builder.reading(database)
    if len(base.where.product.any) == 1 and not {"it", "its"}.isdisjoint(words):
        base = with_slots(Filter(answer=base.answer, fields=base.fields), product=base.where.product)
    is_other = not LISTS["others"].isdisjoint(words)
    builder.inherit(base, is_other=is_other)
    reading = await builder.reading(database)
    if is_other and not base.where.product:
        base = _complement(base, reading)
    reading.filter = _merged(base, reading.filter, words)
    return reading


async def _stated_filter(database: Database, text: str) -> Filter | None:
    """Return the filter that a text states as `kind=game|app; platform=linux&macos; channel!=beta; limit=5`; None if
    the text has another form, or if it contains a name that the catalog does not have."""
    members, where = _stated_members(_DAY.sub(r"\1T00:00:00Z", text))
    for name in where.keys() & {"product", "org"}:
        where[name] = {part: await _exact_names(database, name, values) for part, values in where[name].items()}
    members |= {"channel": where.pop("channel", {}), "where": where}
    try:
        found = msgspec.convert(members, Filter, strict=False)
    except msgspec.ValidationError:
        return None
    return None if found == Filter() or error_in(found) else found


def _stated_members(text: str) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]]]:
    """Return the members and the conditions of a filter; both are empty if the text has another form."""
    members: dict[str, Any] = {}
    where: dict[str, dict[str, list[str]]] = {}
    pairs = [*_PAIR.finditer(text)]
    for name, sign, stated in (pair.groups() for pair in pairs if sum(len(each[0]) for each in pairs) == len(text)):
        values = [value.strip('"') for value in _VALUE.findall(stated)]
        if name in SLOTS:
            where.setdefault(name, {})[_stated_part(sign, stated)] = values
        else:
            members[name] = values if name == "fields" else values[0]
            members |= {"answer": members.get("answer", _FORMS[name])} if name in _FORMS else {}
    return members, where


def _stated_part(sign: str, stated: str) -> str:
    is_all = "&" in _VALUE.sub("", stated)
    return "not" if sign == "!=" else "all" if is_all else "any"


async def _exact_names(database: Database, name: str, values: Sequence[str]) -> list[str]:
    """Return the slugs of the products or publishers; an empty text for a name that does not exist."""
    spans = [names.WordSpan(at, at + 1, value) for at, value in enumerate(values)]
    slugs = {found.start: found.value for found in await names.exact(database, spans) if found.slot == name}
    return [slugs.get(at, "") for at in range(len(values))]


def _complement(base: Filter, reading: Reading) -> Filter:
    """Return a filter for the products of the same publisher that the base filter leaves out. After a question about
    games, "What else do they have?" asks for all products that are not games. A filter cannot exclude two conditions
    together, so such a question gets the guard "else"."""
    left = {name: values for name, values in conditions(base) if name != "org"}
    if len(left) != 1 or any(values.all or values.none for values in left.values()):
        reading.guards.append("else")
    else:
        reading.unused = [word for word in reading.unused if word not in LISTS["others"]]
    return with_slots(base, **{name: Values(none=values.any) for name, values in left.items()})


def _is_continuation(words: Sequence[str], slots: set[str]) -> bool:
    """Return whether the question depends on the previous question. This is the case if the question refers back,
    begins like a continuation, or does not say what to search for."""
    is_fragment = not LISTS["onward openings"].isdisjoint(words[:1]) or words[1:2] == ["about"]
    refers_back = not LISTS["backward"].isdisjoint(words)
    return refers_back or is_fragment or not slots & {"kind", "product", "find", "org"}


def _merged(base: Filter, query: Filter, words: Sequence[str]) -> Filter:
    """Return the base filter with the changes that the new question makes."""
    changes: dict[str, Any] = {}
    if (query.since, query.until, query.when) != (None, None, "any"):
        changes |= {"since": query.since, "until": query.until, "when": query.when}
    if (query.order, query.limit) != ("title", None):
        changes |= {"order": query.order, "limit": query.limit}
    is_request = query.answer != "list" or not LISTS["asking"].isdisjoint(words[:3])
    asks = not _has_same_form(base, query, words) and is_request
    if asks:
        changes |= {"answer": query.answer, "fields": query.fields, "by": query.by}
    if query.find != "products" or (asks and base.find == "publishers"):
        changes["find"] = query.find
    return replace(_merged_slots(base, query, is_narrowed=not LISTS["named before"].isdisjoint(words)), **changes)


def _has_same_form(base: Filter, query: Filter, words: Sequence[str]) -> bool:
    """Return whether the question asks for the same form of answer as the previous question. "And on Windows?" does;
    "and how many?" does not."""
    is_about = "about" in words[1:2] or "and" in words[:1]
    is_plain = query.answer in ("list", "exists", "fields") and not query.fields
    return "same" in words or (is_about and is_plain and base.answer != "list")


def _merged_slots(base: Filter, query: Filter, *, is_narrowed: bool) -> Filter:
    merged = {
        name: _merged_values(name, slot(base, name), values, is_narrowed=is_narrowed)
        for name, values in conditions(query)
    }
    return with_slots(base, **merged)


def _merged_values(name: str, before: Values, values: Values, *, is_narrowed: bool) -> Values:
    if is_narrowed and name in MULTIPLE and len(before.any) == 1 and before.any != values.any:
        # "How many of those run on Linux too?"
        return Values(all=(*before.any, *values.any, *values.all))
    return values


class _Builder(Bound):
    """Determines what to search for, and the form of the answer."""

    def __init__(self, tokens: Sequence[WordToken], recognition: Recognition) -> None:
        super().__init__(tokens, recognition.items)
        self._recognition = recognition
        self._all_words = {*self.words}
        self._fields = self._requested_fields()
        self._kinds = [item.start for item in self.of("kind")]
        self._subjects = [*self._kinds, *(noun.start for noun in self.nouns if noun.value in ("any", "products"))]
        self._releases = [item for item in self.nouns if item.value == "releases"]
        self._members: dict[str, Any] = {}
        self._slots: dict[str, Values] = {}
        self._products: list[Item] = []
        self._unused: list[str] = []
        self._order_of = ""
        self._first = self._first_word()
        self._asks_whether = self._is_yes_no()

    def _first_word(self) -> str:
        """Return the word that begins the question, after "well," or "according to your records"."""
        skipped = {at for item in self.found["skip"] for at in range(item.start, item.end)}
        words = [self.words[at] for at in range(self.sentence.start, len(self.words)) if at not in skipped]
        return next((word for word in words if word not in COURTESY), "")

    def _requested_fields(self) -> list[str]:
        """Return the fields. In "the channel stable", the name of the field only says what "stable" is."""
        values = {(value.slot, value.start) for value in self.values}
        fields = [item for item in self.found["field"] if (SLOT_OF_FIELD.get(item.value), item.end) not in values]
        return list(dict.fromkeys(item.value for item in fields))

    def inherit(self, base: Filter, *, is_other: bool) -> None:
        """Ask about the products of the previous question; "What else …" excludes them (`is_other`)."""
        if not self.of("product"):
            self.values += [Item("product", slug, 0, 0, is_negated=is_other) for slug in base.where.product.any]
            self.used |= LISTS["others"] if is_other else set()

    def _is_yes_no(self) -> bool:
        """Return whether the question is a yes/no question, such as "Does Keyturn …" or "And Keyturn, does it run on
        Linux?"."""
        words = self.words
        if "whether" in words or (self._first in AUXILIARIES and not self.found["polite"]):
            return True
        auxiliary, subject, *_ = [*(words[words.index(",") + 1 :] if "," in words else ()), "", ""]
        is_request = subject == "you" or self._first in QUESTION_WORDS
        return auxiliary in AUXILIARIES and not is_request

    async def reading(self, database: Database) -> Reading:
        """Build the filter, and collect the words that are not part of the filter."""
        self._set_values()
        self._combine_times()
        self._apply_nouns()
        self._set_find()
        await self._of_publisher(database)
        self._compare()
        self.guards += self._ambiguities()
        self._set_answer()
        self._search_notes()
        self._set_limit()
        if self.has_unbound_not and self._members.get("answer") != "compare":
            self.guards.append("not")
        found = with_slots(Filter(**self._members), **self._slots)
        self.guards += self._unanswered(found)
        beyond = [item.value for item in self.found["beyond"]]
        rest = self.guards, beyond, self._recognition.unknown, self._recognition.corrected
        is_about_text, is_search = bool(self.found["all"]), bool(self.of("text"))
        return Reading(found, self._unused, *rest, is_about_text, is_search)

    def _set_values(self) -> None:
        self._slots = self.slots()
        self._products = [item for item in self.of("product") if not item.is_negated]
        self._unused = list(filterfalse(self.used.__contains__, self._recognition.unused))

    def _unanswered(self, found: Filter) -> list[str]:
        """Return what the question asks about unnamed products that neither a list nor a number of products answers:
        the question word ("who", "why"), and the names of fields."""
        if self._states_nothing(found):
            return [*filter(str.isalpha, self.words)][-1:]
        others = [self._first] * (bool(self._unused) and self._is_of_others())
        # "Which release added it?" does not name a product.
        is_of_rows = found.find == "products" or found == Filter(find="releases")
        if self._products or not is_of_rows or found.answer not in ("list", "count", "exists"):
            return others if self._products else []
        return [*others, *filter(self._is_unexpressed, self._fields)]

    def _is_unexpressed(self, name: str) -> bool:
        return name != self._order_of and SLOT_OF_FIELD.get(name) not in self._slots

    def _states_nothing(self, found: Filter) -> bool:
        """Return whether a yes/no question has no condition: "Is Keyturn good?". "Do you have Keyturn?" is complete."""
        is_bare = found.answer == "exists" and replace(with_slots(found, product=Values()), answer="list") == Filter()
        return is_bare and (not self._products or LISTS["having"].isdisjoint(self._all_words))

    def _is_of_others(self) -> bool:
        """Return whether the question asks for something that no list contains: "Who holds the copyright in X?"."""
        return self._first in OF_OTHERS if not self._products else self._first == "who" and "org" not in self._fields

    def _combine_times(self) -> None:
        """Combine the times into one range."""
        times = self.times
        since = max((item.value.since or _EARLIEST for item in times), default=_EARLIEST)
        until = min((item.value.until or _LATEST for item in times), default=_LATEST)
        if since >= until or self._are_apart(times):
            self.guards.append("several times")
        elif times:
            self._members |= {"since": _moment(since), "until": _moment(until), "when": self.when or "any"}
        elif self.when == "none":
            self._members["when"] = "none"

    @staticmethod
    def _are_apart(times: Sequence[Item]) -> bool:
        """Return whether words separate the ranges. "In September of this year" can be combined."""
        ranges = [item for item in times if None not in item.value]
        return any(second.start > first.end + 2 for first, second in pairwise(ranges))

    def _apply_nouns(self) -> None:
        """Apply the nouns that do not name what the question asks for, and the order."""
        nouns = [noun for noun in self.nouns if noun.value != "any"]
        end = self._end_of_subject()
        self.nouns = [noun for noun in nouns if noun.value != "publishers" or self._is_requested(noun, end)]
        self._fields += ["org"] if self.nouns != nouns and self.of("product") else []
        order = {"first": "oldest", "last": "newest"}.get("" if self.times else self.when)
        if order:
            self.orders.append(Item("order", order, 0, 0))
        self._set_order()

    def _is_requested(self, noun: Item, end: int) -> bool:
        """Return whether publishers are asked for, and not products of one, as in "the studio's games"."""
        is_owner = noun.end in self._kinds and self.words[noun.start - 1] in LISTS["articles"]
        return noun.start < end and not is_owner

    def _end_of_subject(self) -> int:
        """Return the position after which publishers are not asked for, as in "Games whose publisher is Northlight
        Games"."""
        if self.of("product"):
            return 0
        return min(self._subjects if self.of("org") else [], default=len(self.words))

    def _set_order(self) -> None:
        is_of_releases = self.nouns[:1] == self._releases[:1] != []
        is_open = is_of_releases and not [*self.orders, *self.times, *self._products]
        if is_open and _ALL & self._all_words and not self._is_of_products(self.nouns[0].start):
            self.orders.append(Item("order", "newest", 0, 0))
        limit = MAX_NUMBER if self.found["sort"] else self.limit
        self._members |= {} if limit is None else {"limit": limit}
        if self.orders:
            self._order_of = self._members["order"] = self.orders[0].value

    def _set_find(self) -> None:
        find = self.nouns[0].value if self.nouns else "products"
        if find == "releases" and self._is_of_products(self.nouns[0].start):
            find = "products"
        if any((self._order_of == "products", all(("org" in self._fields, not self.of("product"))))):
            find = "publishers"
        elif not [*self.nouns, *self._kinds]:
            is_dated = bool(self.times) and self.when in ("", "any")
            # "Is Keyturn out yet?"
            is_out = all((self._asks_whether, self.when == "any", not self._has_condition()))
            is_of_channel = self._is_plural(self.of("channel")) or self._is_extreme_channel()
            if any((is_dated, is_out, is_of_channel)):
                find = "releases"
            if {"play", "playable"} & self._all_words:
                self._slots["kind"] = Values(any=("game",))
        self._members["find"] = find

    def _has_condition(self) -> bool:
        """Return whether a condition restricts the products, and not only their releases."""
        return any(item.slot not in _OF_RELEASES for item in self.values)

    def _is_of_products(self, noun: int) -> bool:
        """Return whether the question asks for a kind of product, as in "games with a release in May"."""
        start = self.sentence.start
        is_of_kind = any(kind < noun - 1 and (noun < start or kind >= start) for kind in self._subjects)
        return is_of_kind or "never" in self._all_words

    def _is_extreme_channel(self) -> bool:
        """Return whether a channel follows the order, as in "the newest beta"."""
        ends = [item.end for item in self.orders[-1:]]
        return any(item.start in ends for item in self.of("channel"))

    async def _of_publisher(self, database: Database) -> None:
        """Search for the other products of the publisher, as in "What else have the makers of it made?"."""
        products, others = self.of("product"), LISTS["others"]
        is_of_maker = "org" in self._fields or LISTS["making"] & self._all_words
        if len(products) == 1 and others & self._all_words and is_of_maker:
            org = await names.publisher_of(database, products[0].value)
            self._slots |= {"org": Values(any=(org,)), "product": Values(none=(products[0].value,))}
            self._fields, self._products = [], []
            self._unused = [word for word in self._unused if word not in others]
            self._members["find"] = "products"

    def _compare(self) -> None:
        """Answer yes or no about two products: "Are A and B by the same studio?", "Was A updated more recently than
        B?"."""
        fields = tuple(name for name in self._fields if name in SLOT_OF_FIELD)
        if len(self._products) < 2:
            return
        if "against" in self._all_words:
            self.answer = "compare"  # "Set A against B"
        elif "than" in self.guards and self.orders:
            self.guards.remove("than")
            self.answer = "exists"
        elif self.found["same"] and fields:
            self.answer, self._members["fields"] = "exists", fields

    def _ambiguities(self) -> list[str]:
        """Return what makes the question ambiguous, or what a filter cannot express."""
        forms = {item.value for item in self.found["answer"]} - {"exists"}
        guards = {
            "versions of several products": len(self._products) > 1 and self.of("version"),
            # "Are there two betas?", "I can't find 1.2.0, is it out?"
            "number": self._asks_whether and self.limit not in (None, 1),
            # "Did it release more in 2025 or 2026?"
            "more": self._asks_whether and self.times and "more" in self._all_words,
            # "How many games are for Linux, compared to Windows?"
            "several forms of answer": len(forms) > 1,
            # "Which platform has the most games?", "Is Keyturn on the most platforms?"
            "most": self._fields if self._order_of == "products" else self._asks_whether_most(),
        }
        return [guard for guard, applies in guards.items() if applies]

    def _asks_whether_most(self) -> bool:
        return self._order_of in _COUNTS and self._asks_whether and len(self._products) == 1

    def _set_answer(self) -> None:
        """Set the form of the answer to the first form that matches the question."""
        members, products = self._members, self._products
        are_channels = any((self.by == "channel", len(self.of("channel")) > 1))
        if self.answer == "exists":
            members["answer"] = "exists"
        elif all((products, self.orders, are_channels)):
            # The newest release in each channel.
            members |= {"answer": "fields", "fields": ("channels",), "order": "title"}
        elif self.by and not self.orders:
            members |= {"answer": "breakdown", "by": self.by}
        elif self.answer == "count" and not self._is_of_extreme():
            members |= {"answer": "count", "find": "releases" if len(products) == 1 else members["find"]}
        elif any((products, self.answer == "compare")):
            self._about_products()
        elif self._asks_whether:
            members["answer"] = "exists"

    def _is_of_extreme(self) -> bool:
        """Return whether "number" refers to a field of a product instead of a count of results, as in "the number of
        platforms of X" and "the number of its latest release"."""
        is_of_product = self._products and (self.orders or _COUNTED_FIELDS & {*self._fields})
        return bool(is_of_product) or self._order_of == "products"

    def _about_products(self) -> None:
        """Answer a question about named products."""
        members, fields = self._members, tuple(self._fields[:4])
        named, choices = self._slots.get("product", Values()), self._choices()
        if all((self.answer == "compare", len(self.of("product")) > 1)):
            members["answer"] = "compare"
            self._slots["product"] = Values(any=(*named.any, *named.none))
        elif choices and len(self._products) == 1:
            members |= {"answer": "fields", "fields": choices}
        elif self._asks_whether and "notes" not in fields:
            members["answer"] = "exists"
        elif self._is_of_version():
            members |= {"answer": "fields", "fields": ("notes",)}
        elif fields in ((), ("versions",)):
            members |= self._rows_of_products()
        else:
            members |= {"answer": "fields", "fields": fields}
        if "notes" in members.get("fields", ()) and LISTS["whole"] & self._all_words:
            members["limit"] = MAX_NOTES

    def _choices(self) -> tuple[str, ...]:
        """Return the fields for which the question names several values although a product has only one value, as in
        "Is it free or paid?"."""
        several = {name for name, values in self._slots.items() if len(values.any) > 1}
        return tuple(name for name in ("kind", "access", "license") if name in several and len(self.of(name)) > 1)

    def _is_of_version(self) -> bool:
        """Return whether the question asks for everything about a version: "Summarise the 1.9.1 release"."""
        nouns = [] if self.found["all"] else self.nouns
        return "version" in self._slots and not [*self._fields, *self.orders, *nouns]

    def _rows_of_products(self) -> dict[str, Any]:
        has_condition = self._has_condition()
        # "Which of A and B is the newest?"; "more recently" compares both products.
        is_which = all((self._first == "which", not self.nouns))
        is_choice = any((is_which, "or" in [item.joint for item in self._products]))
        is_choice &= "recently" not in self._all_words
        if len(self._products) > 1 and any((has_condition, is_choice)):
            return {"limit": 1} if self.orders else {}
        if any((self._members["find"] == "releases", self.orders, self._fields)):
            return self._releases_of_products()
        is_whether = any((has_condition, "channel" in self._slots)) and not self.found["all"]
        return {"answer": "exists" if is_whether else "fields"}

    def _releases_of_products(self) -> dict[str, Any]:
        if self.orders and len(self._products) > 1:
            return {"find": "products", "answer": "fields", "fields": ("versions",)}
        is_singular = not LISTS["one release"].isdisjoint(self.words[noun.end - 1] for noun in self._releases)
        several = [*self.times, *self.of("version"), *((_ALL | {"list"}) & self._all_words)]
        if several or "limit" in self._members or not (self.orders or is_singular):
            return {"find": "releases"}
        return {"find": "releases", "limit": 1, "order": self._order_of or "newest"}

    def _search_notes(self) -> None:
        """Search the release notes for the unknown words of a question about changes."""
        is_whether = self._asks_whether
        is_of_releases = all((self._releases, self._recognition.is_in_texts))
        is_of_one = (self._members["find"], self._members.get("limit")) == ("releases", 1)
        is_question = any((is_of_releases, is_of_one)) and not any((is_whether, self.orders))
        is_question |= "notes" in self._fields
        is_open = any(("version" not in self._slots, is_whether))
        is_question &= self._first not in OF_OTHERS  # No text says who holds the copyright, or why.
        if all((self._unused, is_question, is_open, len(self._products) == 1)):
            terms = tuple(terms_of(" ".join(self._unused))[:6])
            self._slots["text"] = Values(all=terms) if is_whether else Values(any=terms)
            self._members |= {"find": "releases", "answer": "exists" if is_whether else "fields"}
            self._members |= {"fields": ("notes",), "order": "title", "limit": None}
            self._unused, self._recognition.unknown = [], ""

    def _set_limit(self) -> None:
        """Set the number of results if the question contains no number."""
        members, order = self._members, self._order_of
        if not order or "limit" in members:
            return
        if order in _COUNTS:
            members["limit"] = 1
        elif "answer" not in members and self._is_of_each():
            members |= {"find": "products", "answer": "fields", "fields": ("versions",)}
        elif not any((order == "title", self._products)):
            beginning = self.words[self.sentence.start :][:6]
            is_one = members["find"] == "releases" or not {"was", "is", "one"}.isdisjoint(beginning)
            is_plural = self._is_plural([*self.of("kind"), *self.nouns])
            members["limit"] = MAX_PLURAL if is_plural and not is_one else 1

    def _is_of_each(self) -> bool:
        """Return whether the question asks for the newest release of each product."""
        is_each = bool(_ALL & self._all_words)
        if self._members["find"] == "releases":
            return is_each or "versions" in {self.words[noun.end - 1] for noun in self._releases}
        return is_each and self._is_extreme_channel()

    def _is_plural(self, nouns: Iterable[Item]) -> bool:
        return any(self.words[noun.end - 1].endswith("s") for noun in nouns if not noun.is_negated)


def _moment(at: datetime) -> str | None:
    return None if at in (_EARLIEST, _LATEST) else at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
